"""What is said of plans: the newest decision, and beside it what became of the newest published plan."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.planning.state import GroupState, PlanState, to_json
from tests.support.operate.prometheus_text import Scrape
from tests.support.operate.table_world import NOON, World

Scraping = Callable[..., Scrape]
GROUP = {"cluster_name": "c", "group": "billing"}
MADE = {"epoch": 7, "moves": 3, "moves_made": 1, "published_at": NOON}


@pytest.fixture(autouse=True)
def _groups(world: World) -> None:
    world.write("partition_lag", {}, {"group_id": "free"}, {"group_id": "unplanned"})


def states(found: Scrape) -> set[str]:
    return {dict(labels)["state"] for labels, value in found.of("lagwise_plan_state").items() if value}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"decision": "unchanged", "reason": None}, {"none"}),
        ({"decision": "unchanged", "reason": "held back by cooldown: 3 s"}, {"held_back"}),
        ({"decision": "dry_run"}, {"dry_run"}),
        ({"decision": "advice"}, {"advice"}),
        ({"decision": "awaiting_approval"}, {"awaiting_approval"}),
        ({"decision": "abstain", "reason": "provisional: …"}, {"abstain"}),
        ({"decision": "publish", "plan": {**MADE, "status": "open"}}, {"open"}),
        ({"decision": "unchanged", "plan": {**MADE, "status": "partly"}}, {"partly"}),
        (
            {"decision": "unchanged", "reason": "held back by lag: 0", "plan": {**MADE, "status": "refused"}},
            {"held_back", "refused"},
        ),
    ],
)
def test_state_is_of_the_decision_and_of_the_plan(
    world: World, scrape: Scraping, row: dict[str, Any], expected: set[str]
) -> None:
    world.write("plan_state", {"recorded_at": NOON, **row})

    found = scrape()

    assert states(found) == expected
    assert len(found.of("lagwise_plan_state")) == 13


def test_paused_group_is_so_by_its_order(world: World, scrape: Scraping) -> None:
    world.write("plan_state", {"decision": "abstain", "recorded_at": NOON})
    world.write("orders", {"paused": True, "position": 1})

    assert states(scrape()) == {"abstain", "paused"}


def test_guard_that_holds_is_named(world: World, scrape: Scraping) -> None:
    world.write(
        "plan_state",
        {"decision": "unchanged", "reason": "held back by moves: 9 of 10", "recorded_at": NOON},
        {"group_id": "free", "decision": "dry_run", "recorded_at": NOON},
    )

    found = scrape().of("lagwise_plan_held_back")

    assert found == {frozenset({**GROUP, "guard": "moves"}.items()): 1}


def test_times_that_are_not_known_are_left_out(world: World, scrape: Scraping) -> None:
    plan = {**MADE, "status": "applied", "predicted_drain_s": 90.0, "realised_drain_s": 120.5}
    world.write(
        "plan_state", {"drain_s_before": 600.0, "drain_s_bound": 60.0, "plan": plan, "recorded_at": NOON}
    )

    found = scrape().of("lagwise_plan_drain_seconds")

    assert {dict(labels)["when"]: value for labels, value in found.items()} == {
        "before": 600,
        "bound": 60,
        "predicted": 90,
        "realised": 120.5,
    }


def test_effect_is_of_the_newest_plan_and_absent_until_it_is_judged(world: World, scrape: Scraping) -> None:
    judged = {"plan": {**MADE, "status": "applied"}, "plan_effect": "hurt", "recorded_at": NOON}
    unjudged = {"plan": {**MADE, "status": "applied"}, "recorded_at": NOON}
    newer = {**judged, "decision": "publish", "state": state_of(epoch=8)}
    world.write("plan_state", judged, unjudged | {"group_id": "free"}, newer | {"group_id": "unplanned"})

    found = scrape().of("lagwise_plan_effect")

    assert {(dict(labels)["group"], dict(labels)["effect"]): value for labels, value in found.items()} == {
        ("billing", "helped"): 0,
        ("billing", "hurt"): 1,
        ("billing", "cannot_tell"): 0,
    }


def test_end_of_a_probation_is_exposed_while_the_group_is_on_it(world: World, scrape: Scraping) -> None:
    world.write(
        "plan_state",
        {"decision": "unchanged", "probation_until": NOON, "recorded_at": NOON},
        {"group_id": "free", "decision": "unchanged", "recorded_at": NOON},
    )

    found = scrape().of("lagwise_plan_probation_until_timestamp_seconds")

    assert found == {frozenset(GROUP.items()): NOON.timestamp()}


def test_moves_are_those_of_the_decision_and_of_the_plan(world: World, scrape: Scraping) -> None:
    world.write(
        "plan_state",
        {
            "assignment": [],
            "moves": [{"topic": "t"}],
            "plan": {**MADE, "status": "open"},
            "recorded_at": NOON,
        },
        {"group_id": "unplanned", "decision": "abstain", "moves": [], "recorded_at": NOON},
    )

    found = scrape().of("lagwise_plan_moves")

    assert {dict(labels)["state"]: value for labels, value in found.items()} == {
        "proposed": 1,
        "planned": 3,
        "made": 1,
    }


def state_of(**plan: Any) -> str:
    """What a decision remembers that has a plan with these fields."""
    plain: dict[str, Any] = {
        "epoch": 7,
        "base_generation": 1,
        "target": {},
        "revoked": {},
        "moves": 3,
        "published_at_ms": 1_700_000_000_000,
        "sent_at_ms": 1,
        "valid_until_ms": 1_700_000_600_500,
        "lag": 1,
        "drain_s": 40.0,
        "status_at_ms": 1,
    }
    return to_json(GroupState(plan=PlanState(**{**plain, **plan})))


def test_plan_that_was_just_published_is_the_newest(world: World, scrape: Scraping) -> None:
    """Its own row tells in `plan` what became of the one before it."""
    before = {**MADE, "status": "superseded"}
    world.write("plan_state", {"plan": before, "epoch": 8, "state": state_of(epoch=8), "recorded_at": NOON})

    found = scrape()

    assert states(found) == {"open"}
    assert found.value("lagwise_plan_epoch", **GROUP) == 8
    assert found.value("lagwise_plan_published_timestamp_seconds", **GROUP) == 1_700_000_000
    assert found.value("lagwise_plan_drain_seconds", **GROUP, when="predicted") == 40
    assert found.value("lagwise_plan_moves", **GROUP, state="made") == 0


def test_plan_that_was_just_withdrawn_is_not_open(world: World, scrape: Scraping) -> None:
    remembered = state_of(status="superseded", is_dropped=True)
    world.write("plan_state", {"reason": "withdrawn: paused", "state": remembered, "recorded_at": NOON})

    found = scrape()

    assert states(found) == {"superseded"}
    assert found.value("lagwise_plan_valid_until_timestamp_seconds", **GROUP) is None


def test_nobody_is_missed_in_a_group_that_the_broker_assigns(world: World, scrape: Scraping) -> None:
    state = state_of(revoked={"a": {}}, receivers=("b",))
    world.write("plan_state", {"plan": {**MADE, "status": "open"}, "state": state, "recorded_at": NOON})
    world.write(
        "consumer_groups", {"group_type": "consumer", "members": [{"member_id": "a"}, {"member_id": "b"}]}
    )

    found = scrape()

    assert found.of("lagwise_plan_acks") == {}
    assert found.value("lagwise_plan_acks_missing", **GROUP) is None
    assert states(found) == {"open"}


def test_members_that_an_open_plan_needs_are_missed_until_they_answer(world: World, scrape: Scraping) -> None:
    state = state_of(revoked={"a": {}, "left": {}}, receivers=("b", "c"))
    plan = {**MADE, "status": "open"}
    world.write("plan_state", {"plan": plan, "state": state, "recorded_at": NOON})
    world.write("consumer_groups", {"members": [{"member_id": name} for name in "abcd"]})
    world.write(
        "acks",
        {"kind": "accepted", "id": "a", "member_id": "a", "epoch": 7, "position": 1},
        {"kind": "accepted", "id": "d", "member_id": "d", "epoch": 7, "position": 2},
        {"kind": "refused", "id": "b", "member_id": "b", "epoch": 6, "position": 3},
        {"kind": "refused", "id": "left", "member_id": "left", "epoch": 7, "position": 4},
    )

    found = scrape()

    acks = {dict(labels)["kind"]: value for labels, value in found.of("lagwise_plan_acks").items()}
    assert acks == {"accepted": 2, "applied": 0, "refused": 0, "void": 0}
    assert found.value("lagwise_plan_acks_missing", **GROUP) == 2
    assert found.value("lagwise_plan_epoch", **GROUP) == 7
    assert found.value("lagwise_plan_valid_until_timestamp_seconds", **GROUP) == 1_700_000_600.5
