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
        ({"tables": {"catalog": "lagwise"}}, "tables.catalog"),
        ({"spark": {"spark.a.secret": "x"}}, 'spark."spark.a.secret"'),
        (
            {"kafka": {"properties": _SERVERS | {"security.protocol": "sasl_plaintext"}}},
            'kafka.properties."security.protocol"',
        ),
        (
            {"kafka": {"properties": _SERVERS | {"enable.ssl.certificate.verification": "false"}}},
            'kafka.properties."enable.ssl.certificate.verification"',
        ),
        (
            {"kafka": {"properties": _SERVERS | {"sasl.mechanisms": "oauthbearer"}}},
            'kafka.properties."sasl.mechanism"',
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
        ({"plan": {"dry_run": "approve"}, "source": {"offsets": "admin"}}, "source.offsets"),
        ({"plan": {"groups": [{"pattern": "a"}]}, "source": {"offsets": "admin"}}, "source.offsets"),
    ],
)
def test_risk_is_named_by_its_key(tables: dict[str, Any], key: str) -> None:
    assert _warned(**tables) == [key]


@pytest.mark.parametrize(("interval_s", "warned"), [(240, False), (241, True), (900, True)])
def test_trigger_so_long_that_alerts_take_the_tables_for_old_is_named(
    interval_s: int, *, warned: bool
) -> None:
    assert ("trigger.interval_s" in _warned(trigger={"interval_s": interval_s})) == warned


@pytest.mark.parametrize(
    "tables",
    [
        {"kafka": {"properties": _SERVERS | {"sasl.password": "env:X", "ssl.key.location": "/k"}}},
        {"source": {"offsets": "admin"}},
        {"tables": {"catalog": "lags"}, "spark": {"spark.sql.catalogImplementation": "hive"}},
        {
            "plan": {
                "max_staleness_s": 60,
                "valid_for_s": 120,
                "groups": [{"pattern": "a"}, {"pattern": ".*"}],
            }
        },
    ],
    ids=["references and paths", "coordinators are asked", "a metastore", "just enough"],
)
def test_what_is_safe_is_not_warned_of(tables: dict[str, Any]) -> None:
    assert _warned(**tables) == []


_AS_LONG_AS_A_DAY = 1_440


@pytest.mark.parametrize(
    "pins", [[".+"], ["^.*$"], ["(.*)"], [".*?"], ["[a-z].*", "[^a-z].*"], ["a", ".", "..+"]]
)
def test_pins_that_match_every_topic_together_are_named(pins: list[str]) -> None:
    assert _warned(plan={"guards": {"pin": pins}}) == ["plan.guards.pin"]


@pytest.mark.parametrize(
    "pins", [[], ["a.*"], ["..+"], ["[a-z].*", "[A-Z].*"], ["(?!orders$).*"], [".{1,100}"], ["[^-]+"]]
)
def test_pins_that_leave_a_topic_out_are_not_named(pins: list[str]) -> None:
    assert _warned(plan={"guards": {"pin": pins}}) == []


def test_pins_of_one_rule_are_not_added_to_those_of_another() -> None:
    """What a rule sets replaces what `plan.guards` has."""
    groups = [{"pattern": "a", "guards": {"pin": ["[^a-z].*"]}}]

    assert _warned(plan={"guards": {"pin": ["[a-z].*"]}, "groups": groups}) == []


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"guards": {"min_improvement": 0.5}}, "guards.min_improvement"),
        ({"guards": {"confirmations": _AS_LONG_AS_A_DAY}}, "guards.confirmations"),
        ({"guards": {"settle_s": 86_400}}, "guards.settle_s"),
        ({"options": {"min_gain": 0.5}}, "options.min_gain"),
        ({"options": {"move_cost_s": 3_600}}, "options.move_cost_s"),
        ({"options": {"floor_s": 3_600}}, "options.floor_s"),
        ({"options": {"move_pause_s": 3_600}}, "options.move_pause_s"),
        ({"options": {"group_pause_s": 3_600}}, "options.group_pause_s"),
    ],
)
def test_setting_of_a_group_that_lets_next_to_no_plan_through_is_named(
    settings: dict[str, Any], key: str
) -> None:
    rule = {"pattern": "a", **settings}

    assert _warned(plan={"groups": [rule]}) == [f"plan.groups[0].{key}"]
    assert _warned(plan={"groups": [rule | {"exclude": True}]}) == []
    if "guards" in settings:
        assert _warned(plan={**settings, "groups": [{"pattern": "a"}]}) == [f"plan.{key}"]


@pytest.mark.parametrize(
    "settings",
    [
        {"guards": {"min_improvement": 0.49, "confirmations": _AS_LONG_AS_A_DAY - 1, "settle_s": 86_399}},
        {"options": {"min_gain": 0.49, "move_cost_s": 3_599, "floor_s": 3_599}},
        {"options": {"max_moves": 0, "counts": "even"}},
        {"options": {"max_moves": 0, "count_cap": 5}},
        {"guards": {"moves_share": 1e-9}},
    ],
    ids=["just enough guards", "just enough options", "even counts", "a cap", "two may always move"],
)
def test_setting_of_a_group_that_lets_plans_through_is_not_named(settings: dict[str, Any]) -> None:
    assert _warned(plan={"groups": [{"pattern": "a", **settings}]}) == []


def test_longer_interval_makes_confirmations_take_a_day() -> None:
    plan = {"interval_s": 600, "valid_for_s": 1_200, "guards": {"confirmations": 144}}

    assert _warned(plan=plan) == ["plan.guards.confirmations"]


@pytest.mark.parametrize(("valid_for_s", "warned"), [(119, True), (120, False)])
def test_approval_that_nobody_has_the_time_to_give_is_named(valid_for_s: int, *, warned: bool) -> None:
    plan = {"interval_s": 50, "valid_for_s": valid_for_s}

    assert _warned(plan={**plan, "dry_run": "approve"}) == ["plan.dry_run"] * warned
    groups = [{"pattern": "a", "dry_run": "approve"}]
    assert _warned(plan={**plan, "groups": groups}) == ["plan.groups[0].dry_run"] * warned
