"""The life of a plan that the broker applies: what members own is the acknowledgement."""

from dataclasses import replace

import pytest

from assignor.clients.control import ControlState
from assignor.protocol.commands import Orders
from assignor.protocol.control import decode, encode_key
from pipeline.planning.state import PlanState
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.broker_walk import FOLLOWED, BrokerWalk
from tests.support.planning.facts import NO_GUARDS, NOW_MS, group, partitions
from tests.support.planning.plan_walk import Held

HALFWAY: Held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
BETWEEN: Held = {"a": {"t": (0,)}, "b": {"t": (2,)}}
OTHER: Held = {"a": {"t": (0, 2)}, "b": {"t": (1, 3)}}


def is_withdrawal(decision: Decision) -> bool:
    return decision.sent is not None and decision.sent.record is None


def newest(walk: BrokerWalk) -> PlanState:
    assert walk.state.plan is not None
    return walk.state.plan


def test_plan_is_published_for_the_broker_with_member_ids_and_the_group_epoch() -> None:
    decision = BrokerWalk().decide()

    assert (decision.decided, decision.reason) == ("publish", None)
    record = decode((decision.record or "").encode())
    assert (record.group_protocol, record.base_generation, record.base_protocol) == ("consumer", 4, "")
    assert (record.dry_run, record.migration) == (False, "possible")
    assert {name: one.target for name, one in record.members.items()} == {
        "a": {"t": (0, 3)},
        "b": {"t": (1, 2)},
    }


def test_no_member_that_follows_by_itself_follows_a_plan_for_the_broker() -> None:
    decision = BrokerWalk().decide()
    known = ControlState(cluster="local", group="g")

    known.feed(encode_key("local", "g"), (decision.record or "").encode())

    assert known.newest(NOW_MS + 1) == (decision.epoch, None, None)


def test_plan_that_the_broker_applies_is_under_way_and_then_applied() -> None:
    walk = BrokerWalk()
    published = walk.decide()
    waits = walk.decide(after_s=10)
    walk.take(published)
    taken = walk.decide(after_s=10)
    walk.held = BETWEEN
    between = walk.decide(after_s=10)
    walk.held = HALFWAY
    halfway = walk.decide(after_s=10)
    walk.arrive()
    applied = walk.decide(after_s=10)

    assert [one.decided for one in (waits, taken, between, halfway)] == ["unchanged"] * 4
    assert (
        waits.reason
        == "plan epoch 1 is still current, and the broker takes it when it assigns the group next"
    )
    assert [one.reason for one in (taken, between, halfway)] == [
        f"plan epoch 1 is under way: {made} of 2 moves are made" for made in (0, 0, 1)
    ]
    assert applied.plan is not None
    assert (applied.plan.status, applied.plan.done) == ("applied", 2)
    assert applied.reason == "the group has its target assignment"


def test_plan_is_applied_only_when_every_member_has_arrived() -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    assert walk.target is not None
    walk.held = walk.target

    walk.decide(after_s=10)
    assert newest(walk).status == "open"

    walk.arrive()
    walk.decide(after_s=10)
    assert newest(walk).status == "applied"


def test_stuck_member_is_named_and_the_plan_stays() -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    walk.stuck = frozenset("a")

    stuck = walk.decide(after_s=100)

    assert stuck.decided == "unchanged"
    assert (stuck.reason or "").startswith(
        "plan epoch 1 is stuck: 0 of 2 moves are made, and member a is behind"
    )
    assert newest(walk).status == "open"


@pytest.mark.parametrize(("held", "status"), [(None, "superseded"), (HALFWAY, "partly")])
def test_other_target_of_the_broker_ends_the_plan(held: Held | None, status: str) -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    walk.held = held or walk.held
    walk.decide(after_s=10)
    walk.aim(OTHER)

    decision = walk.decide(after_s=10)

    assert is_withdrawal(decision)
    assert newest(walk).status == status
    assert "the broker has made another target assignment" in (newest(walk).why or "")


def test_members_that_join_or_leave_end_the_plan() -> None:
    walk = BrokerWalk()
    walk.decide()
    walk.held = {**walk.held, "c": {}}
    walk.aim({"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}})

    decision = walk.decide(after_s=10)

    assert is_withdrawal(decision)
    assert newest(walk).status == "superseded"


def test_plan_waits_on_where_the_broker_has_assigned_the_group_without_having_read_it() -> None:
    """As a broker does at the first assignment after its restart: nothing moves, and the record stays good."""
    walk = BrokerWalk()
    published = walk.decide()
    walk.aim(walk.held)
    on_its_way = walk.decide(after_s=10)
    walk.arrive()
    waits = walk.decide(after_s=10)
    walk.take(published)
    walk.arrive()
    applied = walk.decide(after_s=10)

    assert [one.decided for one in (on_its_way, waits)] == ["unchanged", "unchanged"]
    assert applied.plan is not None
    assert (applied.plan.status, applied.plan.done) == ("applied", 2)


def test_member_that_reads_nothing_ends_no_plan() -> None:
    """It comes and goes to have the group assigned, and the broker takes the plan all the same."""
    walk = BrokerWalk()
    published = walk.decide()
    walk.held = {**walk.held, "poke": {}}
    walk.idle = frozenset({"poke"})
    walk.epoch = walk.target_epoch = 5
    beside = walk.decide(after_s=10)
    walk.held = {name: topics for name, topics in walk.held.items() if name != "poke"}
    walk.take(published)
    walk.arrive()
    applied = walk.decide(after_s=10)

    assert beside.decided == "unchanged"
    assert applied.plan is not None
    assert (applied.plan.status, applied.plan.done) == ("applied", 2)


def test_plan_that_ends_before_it_is_applied_is_withdrawn_for_the_broker_would_take_it_later() -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, guards=replace(NO_GUARDS, cooldown_ms=3_600_000)))
    walk.decide()
    walk.aim(OTHER)
    walk.arrive()

    withdrawn = walk.decide(after_s=10)

    assert is_withdrawal(withdrawn)
    assert newest(walk).status == "superseded"
    assert not is_withdrawal(walk.decide(after_s=10))


def test_pin_withdraws_a_plan_that_outlives_its_setting() -> None:
    walk = BrokerWalk()
    walk.decide()
    walk.rules = replace(walk.rules, broker_follows=False, guards=replace(walk.rules.guards, pin=("t",)))

    assert is_withdrawal(walk.decide(after_s=10))


def test_plan_that_the_broker_never_takes_expires_and_is_not_restored() -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, guards=replace(NO_GUARDS, cooldown_ms=3_600_000)))
    walk.decide()

    decision = walk.decide(after_s=601)

    assert decision.decided == "unchanged"
    assert (newest(walk).status, newest(walk).is_dropped) == ("expired", True)


def test_plan_that_the_broker_has_taken_does_not_expire_while_members_are_on_their_way() -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    walk.held = HALFWAY

    walk.decide(after_s=601)
    assert newest(walk).status == "open"

    walk.arrive()
    walk.decide(after_s=10)
    assert newest(walk).status == "applied"


def test_group_without_an_open_plan_is_left_alone_while_it_reconciles() -> None:
    walk = BrokerWalk()
    walk.aim(OTHER)

    decision = walk.decide()

    assert (decision.decided, decision.reason) == (
        "abstain",
        "the group is not stable (state Reconciling); planning resumes after its rebalance",
    )


def test_group_that_the_broker_has_assigned_otherwise_gets_its_applied_plan_again() -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    walk.arrive()
    walk.decide(after_s=10)
    walk.aim({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})
    walk.arrive()

    again = walk.decide(after_s=10)

    assert again.decided == "publish"
    assert decode((again.record or "").encode()).base_generation == 6


def test_member_that_asks_for_another_assignor_makes_the_plan_advice() -> None:
    advice = BrokerWalk(assignors={"a": "lagwise", "b": "uniform"}).decide()

    assert (advice.decided, advice.sent) == ("advice", None)
    assert (advice.reason or "").startswith("member b asks for the broker's assignor uniform")
    assert BrokerWalk(assignors={"a": "lagwise", "b": "lagwise"}).decide().decided == "publish"


def test_dry_run_and_approval_hold_for_the_broker_as_for_members() -> None:
    dry = BrokerWalk(rules=replace(FOLLOWED, dry_run=True)).decide()
    waits = BrokerWalk(rules=replace(FOLLOWED, needs_approval=True)).decide()

    assert (dry.decided, dry.sent) == ("dry_run", None)
    assert (waits.decided, waits.sent) == ("awaiting_approval", None)


def test_setting_changes_nothing_for_a_classic_group() -> None:
    def made(follows: bool) -> Decision:
        facts = group({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})
        rules = replace(FOLLOWED, broker_follows=follows)
        return decide(facts, partitions([900, 800, 10, 0]), rules, None, BrokerWalk().state, now_ms=NOW_MS)

    assert made(follows=True) == made(follows=False)
    assert "group_protocol" not in (made(follows=True).record or "")


def test_setting_that_is_taken_away_publishes_nothing_more_while_the_plan_is_out() -> None:
    walk = BrokerWalk()
    walk.decide()
    walk.rules = replace(FOLLOWED, broker_follows=False)

    decision = walk.decide(after_s=10)

    assert (decision.decided, decision.sent) == ("advice", None)


def test_group_that_the_broker_could_mistake_for_another_has_its_plan_withdrawn_and_gets_none() -> None:
    walk = BrokerWalk()
    walk.decide()
    shared = replace(walk.facts(), mistakable="member a is also a member of group h")
    lags = partitions([900, 800, 10, 0], observed_at_ms=NOW_MS)

    withdrawn = decide(shared, lags, FOLLOWED, walk.published, walk.state, now_ms=NOW_MS + 1)
    after = decide(shared, lags, FOLLOWED, None, withdrawn.state, now_ms=NOW_MS + 2)

    assert is_withdrawal(withdrawn)
    assert withdrawn.reason == "withdrawn: member a is also a member of group h"
    assert (after.decided, after.reason, after.sent) == (
        "abstain",
        "member a is also a member of group h",
        None,
    )


def test_paused_group_has_its_plan_withdrawn_also_while_it_reconciles() -> None:
    walk = BrokerWalk()
    walk.take(walk.decide())
    paused = Orders(cluster="local", group="g", paused=True, at_ms=NOW_MS, by="eva")

    decision = decide(
        replace(walk.facts(), orders=paused),
        partitions(walk.lags),
        walk.rules,
        walk.published,
        walk.state,
        now_ms=walk.now_ms + 1000,
    )

    assert decision.sent is not None
    assert decision.sent.record is None
