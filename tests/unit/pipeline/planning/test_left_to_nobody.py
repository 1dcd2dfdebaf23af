"""A plan that leaves a partition to nobody lives as any other."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.protocol.commands import Approval, Orders
from assignor.protocol.ranges import parse_ranges
from pipeline.planning.facts import GroupFacts, MemberFacts, PartitionFacts
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, group, partitions
from tests.support.planning.plan_walk import out

LAG_STICKY = replace(RULES, strategy="lag-sticky")
SILENT_B = replace(FRESH, silent_since_ms={"b": NOW_MS - 1000})
LEFT = {"the members that could have it do not follow plans": {"u": "1"}}


def facts(of_a: tuple[int, ...] = (0, 1, 2, 3)) -> GroupFacts:
    """Members a and c read t; b alone reads u, whose partition 1 has no owner."""
    members = (
        MemberFacts(member_id="a", client_id="a", client_host="/h", topics=("t",), assigned={"t": of_a}),
        MemberFacts(member_id="b", client_id="b", client_host="/h", topics=("t", "u"), assigned={"u": (0,)}),
        MemberFacts(member_id="c", client_id="c", client_host="/h", topics=("t",)),
    )
    return replace(group({}), members=members)


def lags(after_ms: int = 0) -> PartitionFacts:
    both = partitions([90_000, 80_000, 10, 5, 0, 0], observed_at_ms=NOW_MS + after_ms)
    return replace(both, topic=["t"] * 4 + ["u"] * 2, partition=np.array([0, 1, 2, 3, 0, 1]))


def first(*, needs_approval: bool = False) -> Decision:
    rules = replace(LAG_STICKY, needs_approval=needs_approval)
    decision = decide(facts(), lags(), rules, None, SILENT_B, now_ms=NOW_MS)
    assert decision.target is not None
    assert decision.target.unassigned == LEFT
    return decision


@pytest.mark.parametrize(
    ("seen", "after_ms"),
    [
        pytest.param(facts(), 1000, id="at once"),
        pytest.param(facts(of_a=(0, 2, 3)), 60_000, id="in the middle of a hand-over"),
    ],
)
def test_no_second_plan_is_made_while_the_first_is_under_way(seen: GroupFacts, after_ms: int) -> None:
    decision = first()

    later = decide(seen, lags(after_ms), LAG_STICKY, out(decision), decision.state, now_ms=NOW_MS + after_ms)

    assert decision.decided == "publish"
    assert later.decided == "unchanged"
    assert later.state.plan is not None
    assert later.state.plan.status == "open"


def test_plan_that_waits_can_be_approved() -> None:
    state = first(needs_approval=True).state
    waiting = state.waiting
    assert waiting is not None
    at_ms = NOW_MS + 30_000
    approval = Approval(
        target_hash=waiting.target_hash, base_hash=waiting.base_hash, by="ann@desk", at_ms=at_ms
    )
    approved = replace(facts(), orders=Orders(cluster="local", group="g", at_ms=at_ms, approval=approval))
    rules = replace(LAG_STICKY, needs_approval=True)

    decision = decide(approved, lags(60_000), rules, None, state, now_ms=NOW_MS + 60_000)

    assert (decision.decided, decision.reason) == ("publish", "approved by ann@desk")
    assert decision.target is not None
    assert decision.target.unassigned == LEFT


def test_plan_that_leaves_partitions_out_is_about_the_group_still() -> None:
    """A join of three partitions with two: partition 2 has nobody to go to."""
    joined = group({"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,)}})
    joined = replace(joined, members=tuple(replace(member, topics=("t", "u")) for member in joined.members))
    both = _both(partitions([5, 5, 5]), partitions([5, 5], topic="u"))
    rules = replace(RULES, strategy="sticky-stream-join")
    first = decide(joined, both, rules, None, FRESH, now_ms=NOW_MS)

    second = decide(joined, both, rules, out(first), first.state, now_ms=NOW_MS + 1000)

    assert (first.decided, first.target is not None and first.target.unassigned != {}) == ("publish", True)
    assert second.plan is not None
    assert second.plan.status == "open"


def _both(one: PartitionFacts, other: PartitionFacts) -> PartitionFacts:
    names = [name for name in PartitionFacts.__slots__ if name not in {"topic", "topics"}]
    arrays = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    return PartitionFacts(topic=one.topic + other.topic, **arrays)


@pytest.mark.parametrize("silent", [{}, {"b": NOW_MS - 1000}], ids=["b follows", "b is silent"])
def test_partition_that_the_group_has_assigned_since_is_not_taken_from_its_reader(
    silent: dict[str, int],
) -> None:
    decision = first()
    assert decision.assignment is not None
    held = {
        name: {topic: parse_ranges(ranges, at_most=10) for topic, ranges in topics.items()}
        for name, topics in decision.assignment.items()
    }
    made = replace(
        facts(), members=tuple(replace(one, assigned=held[one.member_id]) for one in facts().members)
    )
    applied = decide(made, lags(60_000), LAG_STICKY, out(decision), decision.state, now_ms=NOW_MS + 60_000)
    assert applied.state.plan is not None
    assert applied.state.plan.status == "applied"
    a, b, c = facts().members
    grown = replace(
        facts(), generation=5, members=(a, replace(b, assigned={"u": (0, 1)}), replace(c, assigned={}))
    )

    state = replace(applied.state, silent_since_ms=silent)
    later = decide(grown, lags(120_000), LAG_STICKY, out(decision), state, now_ms=NOW_MS + 120_000)

    assert all(move.to_member is not None for move in later.moves)
