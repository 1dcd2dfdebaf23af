"""Kafka's scenarios of CooperativeStickyAssignor: what the first rebalance withholds and the second gives out."""

import pytest

from assignor.evaluation import validity
from assignor.model.assignment import Unassigned
from assignor.model.by_member import by_member
from assignor.model.group import Group
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.handover import next_step
from assignor.strategies.registry import STRATEGIES
from assignor.strategies.sticky import cooperative as cooperative_sticky
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.groups import group, member, owned_by

Rebalance = dict[str, list[str]]


def rebalance(built: Group) -> tuple[Rebalance, Group]:
    """What the leader gives out, partitions as people write them, and the group once that is applied."""
    given = next_step(built, cooperative_sticky.assign(built))
    validity.check(built, given)
    names = {
        member_id: [f"{topic}-{i}" for topic, numbers in placed.items() for i in numbers]
        for member_id, placed in by_member(built, given.member).items()
    }
    waiting = [built.topics.name(pid) for pid in (given.why == Unassigned.WITHHELD).nonzero()[0]]
    return names | ({"withheld": waiting} if waiting else {}), owned_by(built, given)


A_OWNS_ALL = member("a", "t", owned={"t": [0, 1, 2]})
# id: group, first rebalance, second rebalance
SCENARIOS: dict[str, tuple[Group, Rebalance, Rebalance]] = {
    "fresh group": (
        group({"t": 2}, member("a", "t"), member("b", "t")),
        {"a": ["t-0"], "b": ["t-1"]},
        {"a": ["t-0"], "b": ["t-1"]},
    ),
    "a member joins": (
        group({"t": 3}, A_OWNS_ALL, member("b", "t")),
        {"a": ["t-0", "t-1"], "b": [], "withheld": ["t-2"]},
        {"a": ["t-0", "t-1"], "b": ["t-2"]},
    ),
    "a member left": (
        group({"t": 3}, member("b", "t", owned={"t": [2]})),
        {"b": ["t-0", "t-1", "t-2"]},
        {"b": ["t-0", "t-1", "t-2"]},
    ),
    "everybody is below the floor": (
        group(
            {"t": 5}, member("a", "t", owned={"t": [1]}), member("b", "t", owned={"t": [0]}), member("c", "t")
        ),
        {"a": ["t-1", "t-3"], "b": ["t-0", "t-4"], "c": ["t-2"]},
        {"a": ["t-1", "t-3"], "b": ["t-0", "t-4"], "c": ["t-2"]},
    ),
    "partition claimed twice in one generation": (
        group(
            {"t": 3},
            member("a", "t", owned={"t": [0, 1]}),
            member("b", "t", owned={"t": [0, 2]}),
            member("c", "t"),
        ),
        {"a": ["t-1"], "b": ["t-2"], "c": [], "withheld": ["t-0"]},
        {"a": ["t-1"], "b": ["t-2"], "c": ["t-0"]},
    ),
    "the target has an old claim, the holder a new one": (
        group(
            {"t": 2, "u": 1},
            member("live", "t", "u", owned={"t": [0, 1], "u": [0]}, generation=5),
            member("stale", "t", owned={"t": [1]}, generation=4),
        ),
        {"live": ["t-0", "u-0"], "stale": [], "withheld": ["t-1"]},
        {"live": ["t-0", "u-0"], "stale": ["t-1"]},
    ),
    "holder no longer subscribes": (
        group({"t": 1, "u": 1}, member("a", "u", owned={"t": [0]}), member("b", "t", "u")),
        {"a": ["u-0"], "b": [], "withheld": ["t-0"]},
        {"a": ["u-0"], "b": ["t-0"]},
    ),
    "a chain of moves": (
        group(
            {"t": 2, "u": 1},
            member("a", "t", owned={"t": [0, 1]}),
            member("b", "t", "u", owned={"u": [0]}),
            member("c", "u"),
        ),
        {"a": ["t-0"], "b": [], "c": [], "withheld": ["t-1", "u-0"]},
        {"a": ["t-0"], "b": ["t-1"], "c": ["u-0"]},
    ),
}


@pytest.mark.parametrize(("built", "first", "second"), SCENARIOS.values(), ids=list(SCENARIOS))
def test_partition_changes_hands_in_two_rebalances(built: Group, first: Rebalance, second: Rebalance) -> None:
    given_first, revoked = rebalance(built)
    given_second, _ = rebalance(revoked)

    assert given_first == first
    assert given_second == second


@pytest.mark.parametrize("built", [built for built, _, _ in SCENARIOS.values()], ids=list(SCENARIOS))
def test_target_is_that_of_sticky(built: Group) -> None:
    target = cooperative_sticky.assign(built)

    validity.check(built, target, even="optimal")
    assert target.member.tolist() == sticky.assign(built).member.tolist()


def test_sticky_is_eager_and_cooperative_sticky_may_be_either() -> None:
    assert STRATEGIES["sticky"].protocols == (RebalanceProtocol.EAGER,)
    assert STRATEGIES["cooperative-sticky"].protocols == (
        RebalanceProtocol.EAGER,
        RebalanceProtocol.COOPERATIVE,
    )
