import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.config.load import load, tomllib
from pipeline.config.model import Config
from pipeline.config.names import known_keys
from pipeline.operate.cli.app import app
from pipeline.operate.demo.folder import TEMPLATE

_CONF = Path(__file__).parents[4] / "conf"
_REFERENCE = (_CONF / "lagwise.toml").read_text(encoding="utf-8")


def test_reference_file_is_the_defaults() -> None:
    assert load(_CONF / "lagwise.toml") == Config()


def test_demo_file_loads_and_publishes() -> None:
    config = load(TEMPLATE)

    assert not config.plan.dry_run
    assert config.trigger.interval_s == 5


@pytest.mark.parametrize("file", sorted((_CONF / "examples").glob("*.toml")), ids=lambda file: file.stem)
def test_example_can_be_used_and_is_not_warned_of(file: Path) -> None:
    result = CliRunner().invoke(app, ("config", "check", str(file)))

    assert result.exit_code == 0, result.output
    assert "warning" not in result.output


@pytest.mark.parametrize(
    "name", ["aiven", "confluent-cloud", "event-hubs", "msk-iam", "msk-scram", "redpanda"]
)
def test_example_of_a_managed_service_says_first_what_was_tried_and_where_the_offsets_topic_is_hidden(
    name: str,
) -> None:
    text = (_CONF / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    comment = " ".join(line.removeprefix("#").strip() for line in text.partition("\n\n")[0].splitlines())

    assert re.search(r"(was|were) (not )?tried against", comment)
    assert "Tried: `lagwise config check` of this file" in comment
    is_hidden = name in {"confluent-cloud", "event-hubs"}
    assert ('source.offsets = "admin"' in comment) is (is_hidden or name == "msk-iam")
    assert ('offsets = "admin"\n' in text.partition("\n\n")[2]) is is_hidden


def test_reference_file_has_every_key() -> None:
    tables = tomllib.loads(_REFERENCE)
    present = set(_names(tables))
    in_example = set(re.findall(r"^#   (\w+) = ", _REFERENCE, re.MULTILINE))

    rules = {key for key in known_keys() if key.startswith("plan.groups.")}
    assert {key.split(".")[2] for key in rules} <= in_example
    assert set(known_keys()) - rules - {"plan.groups"} <= present


def _names(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _names(value, f"{prefix}{key}.")


def test_example_of_a_group_rule_is_valid() -> None:
    example = re.search(r"^#   \[\[plan\.groups\]\]\n(?:#   .*\n)+", _REFERENCE, re.MULTILINE)
    assert example is not None

    config = Config.model_validate(tomllib.loads(re.sub(r"^#   ", "", example[0], flags=re.MULTILINE)))

    settings = config.plan.for_group("billing-eu")
    assert (settings.strategy, settings.options) == ("lag-sticky", {"max_moves": 20, "floor_s": 30})
    assert (settings.guards.min_lag, settings.guards.min_lag_s) == (1000, 300)


def test_every_key_of_the_reference_has_its_meaning_above() -> None:
    lines = _REFERENCE.splitlines()

    bare = [
        line
        for above, line in pairwise(lines)
        if re.match(r'"?[\w.]+"? = ', line)
        and not above.startswith(("#", "topics_include", "groups_include"))
    ]
    assert bare == []


@pytest.mark.parametrize(
    "key", [key for key in known_keys() if re.search(r"_(s|hours|days|bytes|batches)$", key)]
)
def test_unit_in_a_name_is_said_in_its_comment(key: str) -> None:
    name = key.rpartition(".")[2]
    unit = {"s": "seconds"}.get(name.rpartition("_")[2], name.rpartition("_")[2])

    comments = re.findall(rf"((?:^#.*\n)+){name} = ", _REFERENCE, re.MULTILINE)
    assert comments
    assert all(re.search(rf"\b{unit}\.\n$", comment) for comment in comments)
