from typing import Any

import pytest

from pipeline.config.advice import warnings
from pipeline.config.model import Config

_SERVERS = {"bootstrap.servers": "b:1"}


def _warned(**tables: Any) -> list[str]:
    """Keys that are warned of."""
    return [line.partition(": ")[0] for line in warnings(Config.model_validate(tables))]


def test_defaults_are_not_warned_of() -> None:
    assert warnings(Config()) == ()


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"kafka": {"properties": _SERVERS | {"sasl.password": "x"}}}, 'kafka.properties."sasl.password"'),
        ({"kafka": {"java": {"sasl.jaas.config": "x"}}}, "kafka.java"),
        ({"tables": {"storage_options": {"A_KEY": "x"}}}, 'tables.storage_options."A_KEY"'),
        ({"spark": {"spark.a.secret": "x"}}, 'spark."spark.a.secret"'),
        (
            {"kafka": {"properties": _SERVERS | {"security.protocol": "sasl_plaintext"}}},
            'kafka.properties."security.protocol"',
        ),
        (
            {"kafka": {"properties": _SERVERS | {"enable.ssl.certificate.verification": "false"}}},
            'kafka.properties."enable.ssl.certificate.verification"',
        ),
        ({"serve": {"token": "env:TOKEN", "host": "10.0.0.1"}}, "serve.token"),
        ({"plan": {"max_staleness_s": 59}}, "plan.max_staleness_s"),
        ({"plan": {"valid_for_s": 119}}, "plan.valid_for_s"),
        ({"history": {"interval_s": 29}}, "history.interval_s"),
        ({"plan": {"dry_run": False}}, "plan.dry_run"),
        ({"plan": {"guards": {"pin": ["a", ".*"]}}}, "plan.guards.pin"),
        ({"plan": {"groups": [{"pattern": "a", "guards": {"pin": [".*"]}}]}}, "plan.groups[0].guards.pin"),
        (
            {"plan": {"groups": [{"pattern": "a", "options": {"max_moves": 0}}]}},
            "plan.groups[0].options.max_moves",
        ),
        (
            {"plan": {"groups": [{"pattern": "a", "options": {"min_gain": 1}}]}},
            "plan.groups[0].options.min_gain",
        ),
        ({"plan": {"groups": [{"pattern": ".*"}, {"pattern": "a"}]}}, "plan.groups[0].pattern"),
    ],
)
def test_risk_is_named_by_its_key(tables: dict[str, Any], key: str) -> None:
    assert _warned(**tables) == [key]


@pytest.mark.parametrize(
    "tables",
    [
        {"kafka": {"properties": _SERVERS | {"sasl.password": "env:X", "ssl.key.location": "/k"}}},
        {
            "plan": {
                "max_staleness_s": 60,
                "valid_for_s": 120,
                "groups": [{"pattern": "a"}, {"pattern": ".*"}],
            }
        },
    ],
    ids=["references and paths", "just enough"],
)
def test_what_is_safe_is_not_warned_of(tables: dict[str, Any]) -> None:
    assert _warned(**tables) == []
