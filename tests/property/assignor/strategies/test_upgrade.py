"""Groups on their way from eager to cooperative and back (KIP-726), with whatever can go wrong on it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pytest
from hypothesis import Phase as HypothesisPhase
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.selection import DEFAULT_ASSIGNORS
from tests.support.followers.upgrade_group import PARTITIONS, SimulatedGroup
from tests.support.followers.upgrade_member import Partition, Phase, RebalancingMember

Step: TypeAlias = Callable[[SimulatedGroup], None]

BOTH = DEFAULT_ASSIGNORS["kip"]
OLD = ("range",)
NEW = ("cooperative-sticky",)
SLOTS = (0, 1, 2)
LATE = 3


def bounce(slot: int, assignors: tuple[str, ...], group: SimulatedGroup) -> None:
    group.stop(slot)
    group.start(slot, assignors)


def replace_crashed(slot: int, assignors: tuple[str, ...], group: SimulatedGroup) -> None:
    group.crash(slot)
    group.start(slot, assignors)


def _step(kind: Callable[..., None], *arguments: object) -> Step:
    return partial(kind, *arguments)


POLLS = [_step(lambda slot, group: group.poll(slot), slot) for slot in (*SLOTS, LATE)]
TIMEOUTS = [_step(lambda slot, group: group.expire(slot), slot) for slot in SLOTS]
BOUNCES = [_step(bounce, slot, assignors) for slot in SLOTS for assignors in (BOTH, OLD, NEW)]
CRASHES = [_step(replace_crashed, slot, assignors) for slot in SLOTS for assignors in (BOTH, OLD)]
REST: Step = SimulatedGroup.settle
LATE_EAGER = _step(bounce, LATE, OLD)
DEAD_GONE: Step = SimulatedGroup.expire_crashed
# Mostly polls, so that rebalances get somewhere before the next disturbance. One for each value of a byte: a walk is
# one cheap draw, and shrinks to a short one of polls.
STEPS = [*POLLS * 55, *BOUNCES, *CRASHES, *TIMEOUTS, *[LATE_EAGER, DEAD_GONE, REST] * 6]
assert len(STEPS) == 256
WALKS = st.binary(min_size=40, max_size=80).map(lambda drawn: [STEPS[byte] for byte in drawn])


def started(kind: type[RebalancingMember] = RebalancingMember) -> SimulatedGroup:
    group = SimulatedGroup(kind=kind)
    for slot in SLOTS:
        group.start(slot, BOTH)
    group.settle()
    return group


def first_double_owners(walk: Sequence[Step], kind: type[RebalancingMember]) -> list[Partition]:
    group = started(kind)
    for step in walk:
        step(group)
        if group.double_owners():
            return group.double_owners()
    return []


class KeepsItsPartitions(RebalancingMember):
    """Without the rule: a cooperative member goes on as if a cooperative assignor had been selected."""

    def selected(self, assignor: str, *, generation: int) -> RebalancingMember:
        state = RebalancingMember.selected(self, assignor, generation=generation)
        return replace(state, phase=Phase.SYNCING, owned=self.owned, may_commit=self.may_commit)


class LosesButCommits(RebalancingMember):
    """Half of the rule: partitions are lost, but what is in hand is still committed."""

    def selected(self, assignor: str, *, generation: int) -> RebalancingMember:
        return replace(
            RebalancingMember.selected(self, assignor, generation=generation), may_commit=self.may_commit
        )


class CommitsBeforeItRejoined(RebalancingMember):
    """The rule with an end that comes too soon: at the next JoinGroup, not at the answer to it."""

    def prepare(self) -> RebalancingMember:
        return replace(RebalancingMember.prepare(self), may_commit=True)


@settings(max_examples=300)
@given(WALKS)
def test_no_two_members_may_commit_for_one_partition(walk: list[Step]) -> None:
    assert first_double_owners(walk, RebalancingMember) == []


@pytest.mark.parametrize("mutant", [KeepsItsPartitions, LosesButCommits, CommitsBeforeItRejoined])
def test_walk_finds_two_owners_where_the_rule_is_missing(mutant: type[RebalancingMember]) -> None:
    chance = settings(max_examples=1000, derandomize=True, database=None, phases=[HypothesisPhase.generate])

    try:
        walk = find(WALKS, lambda walk: bool(first_double_owners(walk, mutant)), settings=chance)
    except NoSuchExample:
        pytest.fail("no walk shows what the rule is for")

    assert first_double_owners(walk, RebalancingMember) == []


@given(WALKS)
def test_every_partition_is_owned_again_once_the_group_is_quiet(walk: list[Step]) -> None:
    group = started()
    for step in walk:
        step(group)

    group.settle()

    states = [consumer.state for consumer in group.consumers.values()]
    owned = [partition for state in states for partition in state.owned]
    assert sorted(owned) == sorted(PARTITIONS if states else ())
    assert all(state.may_commit for state in states)


ORDERS = st.permutations(SLOTS)
BETWEEN = st.lists(st.sampled_from(POLLS), max_size=12)


@pytest.mark.parametrize(
    ("before", "after", "assignor", "protocol"),
    [
        (OLD, BOTH, "cooperative-sticky", RebalanceProtocol.COOPERATIVE),
        (BOTH, OLD, "range", RebalanceProtocol.EAGER),
    ],
    ids=["up", "down"],
)
@given(order=ORDERS, between=st.lists(BETWEEN, min_size=3, max_size=3))
def test_one_rolling_bounce_changes_the_protocol(
    *,
    before: tuple[str, ...],
    after: tuple[str, ...],
    assignor: str,
    protocol: RebalanceProtocol,
    order: list[int],
    between: list[list[Step]],
) -> None:
    group = SimulatedGroup()
    for slot in SLOTS:
        group.start(slot, before)
    group.settle()

    for slot, steps in zip(order, between, strict=True):
        bounce(slot, after, group)
        for step in steps:
            step(group)
            assert group.double_owners() == []
    group.settle()

    assert group.coordinator.assignor == assignor
    assert {consumer.state.protocol for consumer in group.consumers.values()} == {protocol}
