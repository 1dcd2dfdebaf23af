from pathlib import Path

import pytest

import pipeline
from pipeline.config.advice import warnings
from pipeline.config.model import Config
from tests.support.operate.message_form import faults
from tests.support.operate.message_texts import Text, helps, messages

_ROOT = Path(pipeline.__file__).parent
_FOLDERS = ["config", "kafka", "local", "operate", "tables"]


@pytest.mark.parametrize("name", _FOLDERS)
def test_message_has_the_form_of_one(name: str) -> None:
    found = messages(_ROOT / name)

    assert found
    assert {one: faults(one.text) for one in found if faults(one.text)} == {}


def test_help_is_a_sentence_with_a_period() -> None:
    found = helps(_ROOT / "operate")

    assert found
    assert [one for one in found if not _is_sentence(one)] == []


def test_warning_of_a_configuration_has_the_form_of_a_message() -> None:
    secret = {"sasl.password": "x", "security.protocol": "SASL_PLAINTEXT"}
    risky = Config.model_validate(
        {
            "kafka": {
                "properties": {
                    "bootstrap.servers": "b:1",
                    "enable.ssl.certificate.verification": "false",
                    **secret,
                },
                "java": {"a": "b"},
            },
            "history": {"interval_s": 1},
            "plan": {
                "max_staleness_s": 1,
                "valid_for_s": 1,
                "dry_run": False,
                "groups": [{"pattern": ".*"}, {"pattern": "a"}],
            },
        }
    )

    assert {line: faults(line) for line in warnings(risky) if faults(line)} == {}
    assert len(warnings(risky)) == 9


def _is_sentence(one: Text) -> bool:
    first = one.text[0]
    return one.text.endswith(".") and first == first.upper() and one.text == " ".join(one.text.split())
