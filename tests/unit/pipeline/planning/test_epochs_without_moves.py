"""What the epoch of a KIP-848 group means to the planner, whose hashes leave it out.

An epoch without a move is no rebalance for the judge, the price and the guards; after one with moves the guards hold.
"""

from dataclasses import replace

import pytest

from assignor.protocol.commands import Approval, Orders
from pipeline.planning.broker_groups import seen
from pipeline.planning.facts import GroupFacts
from pipeline.planning.state import FRESH, GroupState
from pipeline.planning.values import Decision
from tests.support.planning.broker_walk import FOLLOWED, BrokerWalk
from tests.support.planning.facts import NOW_MS
from tests.support.planning.plan_walk import Held

OTHER: Held = {"a": {"t": (0, 2)}, "b": {"t": (1, 3)}}
LATER_MS = NOW_MS + 600_000


def state_of(walk: BrokerWalk) -> GroupState:
    """The state once its plan is applied."""
    walk.take(walk.decide())
    walk.arrive()
    walk.decide(after_s=10)
    return walk.state


def looked_at(walk: BrokerWalk, state: GroupState) -> GroupState:
    return seen(state, walk.facts(), now_ms=LATER_MS)


def test_epoch_that_moves_nothing_is_no_rebalance() -> None:
    walk = BrokerWalk()
    state = state_of(walk)
    walk.epoch = walk.target_epoch = 9

    after = looked_at(walk, state)

    assert after == replace(state, generation=9)


def test_taking_the_plan_is_no_rebalance_and_the_group_settles_anew() -> None:
    walk = BrokerWalk()
    published = walk.decide()
    before = walk.state
    walk.take(published)

    after = looked_at(walk, before)

    assert (after.since_ms, after.rebalanced_at_ms) == (LATER_MS, before.rebalanced_at_ms)


def test_other_target_assignment_is_a_rebalance_whatever_the_epoch() -> None:
    walk = BrokerWalk()
    state = state_of(walk)
    walk.target = OTHER

    after = looked_at(walk, state)

    assert (after.since_ms, after.rebalanced_at_ms) == (LATER_MS, LATER_MS)


def test_members_on_their_way_to_the_target_are_no_rebalance() -> None:
    walk = BrokerWalk()
    state = state_of(walk)
    walk.target = walk.held
    walk.held = {"a": {"t": (0,)}, "b": {"t": (2,)}}

    assert looked_at(walk, state) == state


@pytest.mark.parametrize("of_state", [FRESH, GroupState(generation=4, since_ms=1)])
def test_state_that_remembers_no_target_counts_epochs(of_state: GroupState) -> None:
    walk = BrokerWalk(epoch=5)

    after = looked_at(walk, of_state)

    assert after.generation == 5
    assert after.rebalanced_at_ms == (LATER_MS if of_state.since_ms else 0)
    assert after.targets_hash is not None


def test_classic_group_is_rebalanced_by_each_generation() -> None:
    walk = BrokerWalk()
    state = state_of(walk)
    classic = GroupFacts(group_id="g", group_type="classic", generation=9)

    after = seen(state, classic, now_ms=LATER_MS)

    assert (after.rebalanced_at_ms, after.targets_hash) == (LATER_MS, None)


def approve(walk: BrokerWalk, looked_at: Decision) -> Decision:
    """The decision a minute after an operator has approved what he has looked at."""
    assert looked_at.target_hash is not None
    assert looked_at.base_hash is not None
    approval = Approval(
        target_hash=looked_at.target_hash, base_hash=looked_at.base_hash, by="ann", at_ms=walk.now_ms + 1
    )
    walk.orders = Orders(cluster="local", group="g", approval=approval)
    return walk.decide(after_s=60)


@pytest.mark.parametrize("is_beside", [False, True], ids=["it has left again", "it is there"])
def test_plan_that_waits_is_approved_after_a_member_that_reads_nothing_has_come(is_beside: bool) -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, needs_approval=True))
    looked_at = walk.decide()
    walk.epoch = walk.target_epoch = 5
    if is_beside:
        walk.held, walk.idle = {**walk.held, "idle": {}}, frozenset({"idle"})

    assert walk.decide(after_s=60).state.waiting == looked_at.state.waiting
    published = approve(walk, looked_at)

    assert (published.decided, published.reason) == ("publish", "approved by ann")
    assert (published.target_hash, published.base_hash) == (looked_at.target_hash, looked_at.base_hash)


@pytest.mark.parametrize(
    ("held", "cause"),
    [
        (OTHER, "the group rebalanced after the plan was made"),
        ({"a": {"t": (0, 3)}, "b": {"t": (1, 2)}}, "the group has its target assignment"),
        ({"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}}, "the members or the partitions"),
    ],
    ids=["moves", "at its target", "members"],
)
def test_epoch_with_moves_refuses_an_approval(held: Held, cause: str) -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, needs_approval=True))
    looked_at = walk.decide()
    walk.epoch = walk.target_epoch = 5
    walk.held = held

    assert (approve(walk, looked_at).reason or "").startswith(f"approval refused: {cause}")


def test_confirmations_go_on_after_an_epoch_that_moves_nothing() -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, guards=replace(FOLLOWED.guards, confirmations=2)))
    first = walk.decide()
    walk.epoch = walk.target_epoch = 5

    assert (first.decided, walk.decide(after_s=60).decided) == ("unchanged", "publish")


def fallen_back() -> BrokerWalk:
    """A group that had applied its plan, and in which the broker has since restored the assignment of before."""
    walk = BrokerWalk()
    before = walk.held
    state_of(walk)
    walk.aim(before)
    walk.arrive()
    return walk


@pytest.mark.parametrize("after_s", [60, 360], ids=["while it is young", "when half of its time is over"])
def test_probation_holds_back_an_applied_plan_that_hurt_and_from_which_the_group_has_fallen_back(
    after_s: int,
) -> None:
    walk = fallen_back()
    assert walk.state.plan is not None
    hurt = replace(walk.state.plan, effect="hurt", effect_why="", effect_at_ms=walk.now_ms, is_dropped=True)
    walk.state = replace(walk.state, plan=hurt, probation_until_ms=walk.now_ms + 6_000_000)

    decision = walk.decide(after_s=after_s)

    assert decision.decided == "unchanged"
    assert (decision.reason or "").startswith("held back by probation")


@pytest.mark.parametrize(("pause_s", "decided"), [(600, "publish"), (601, "unchanged")])
def test_applied_plan_that_the_group_has_lost_in_a_long_pause_comes_back_only_through_the_guards(
    pause_s: int, decided: str
) -> None:
    walk = fallen_back()
    walk.rules = replace(FOLLOWED, guards=replace(FOLLOWED.guards, confirmations=2))

    assert walk.decide(after_s=pause_s).decided == decided


def test_applied_plan_that_the_group_has_lost_is_approved_anew() -> None:
    walk = BrokerWalk(rules=replace(FOLLOWED, needs_approval=True))
    before = walk.held
    walk.take(approve(walk, walk.decide()))
    walk.arrive()
    walk.decide(after_s=10)
    assert walk.state.plan is not None
    walk.state = replace(walk.state, plan=replace(walk.state.plan, is_dropped=True))
    walk.aim(before)
    walk.arrive()

    assert walk.decide(after_s=360).decided == "awaiting_approval"
