"""Kafka's named scenarios of the sticky assignors (AbstractStickyAssignorTest, StickyAssignorTest), one rebalance each.

Where Kafka and this project choose differently among equally good assignments, counts and moves are compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from assignor.errors import UnequalSubscriptionsError
from assignor.evaluation import validity
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.model.members import Member
from assignor.strategies.registry import STRATEGIES
from assignor.strategies.sticky import constrained as constrained_sticky
from assignor.strategies.sticky import cooperative as cooperative_sticky
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.groups import by_name, group, member

Assign = Callable[[Group], Assignment]

EVERY_STICKY = pytest.mark.parametrize(
    "assign",
    [sticky.assign, cooperative_sticky.assign, partial(constrained_sticky.assign, old_claims="keep")],
    ids=["sticky", "cooperative-sticky", "constrained-cooperative-sticky"],
)


def assigned(assign: Assign, built: Group) -> dict[str, list[str]]:
    target = assign(built)
    validity.check(built, target, even="optimal")
    return by_name(built, target)


# id: partitions, members, assignment
EXACT: dict[str, tuple[dict[str, int], tuple[Member, ...], dict[str, list[str]]]] = {
    "nothing": ({}, (), {}),
    "no members": ({"t": 2}, (), {}),
    "no partitions": ({}, (member("c", "t"),), {"c": []}),
    "no subscription": ({"t": 2}, (member("c"),), {"c": []}),
    "topic that does not exist": ({}, (member("c", "gone"),), {"c": []}),
    "only subscribed topic was deleted": ({}, (member("c", "t", owned={"t": [0, 1]}),), {"c": []}),
    "one of two topics was deleted": (
        {"t": 1},
        (member("c", "t", "old", owned={"t": [0], "old": [0, 1]}),),
        {"c": ["t-0"]},
    ),
    "one member, one topic": ({"t": 3}, (member("c", "t"),), {"c": ["t-0", "t-1", "t-2"]}),
    "one member, two topics": (
        {"t1": 1, "t2": 2},
        (member("c", "t1", "t2"),),
        {"c": ["t1-0", "t2-0", "t2-1"]},
    ),
    "owned partition of a topic it does not read": (
        {"t": 2, "other": 2},
        (member("c", "t", owned={"t": [0], "other": [0]}),),
        {"c": ["t-0", "t-1"]},
    ),
    "two members, one partition": (
        {"t": 1},
        (member("c1", "t"), member("c2", "t")),
        {"c1": ["t-0"], "c2": []},
    ),
    "two members, two partitions": (
        {"t": 2},
        (member("c1", "t"), member("c2", "t")),
        {"c1": ["t-0"], "c2": ["t-1"]},
    ),
    "two members, two topics, dealt by number, then topic": (
        {"t1": 3, "t2": 3},
        (member("c1", "t1", "t2"), member("c2", "t1", "t2")),
        {"c1": ["t1-0", "t1-1", "t2-0"], "c2": ["t1-2", "t2-1", "t2-2"]},
    ),
    "of two that own the floor the first gets the extra": (
        {"t": 5},
        (member("c1", "t", owned={"t": [0, 2]}), member("c2", "t", owned={"t": [1, 3]})),
        {"c1": ["t-0", "t-2", "t-4"], "c2": ["t-1", "t-3"]},
    ),
    "two own the ceiling and only one may": (
        {"t1": 2, "t2": 2},
        (
            member("c1", "t1", "t2", owned={"t1": [0], "t2": [0]}),
            member("c2", "t1", "t2", owned={"t1": [1], "t2": [1]}),
            member("c3", "t1", "t2"),
        ),
        {"c1": ["t1-0", "t2-0"], "c2": ["t1-1"], "c3": ["t2-1"]},
    ),
    "everybody is below the floor": (
        {"t": 5},
        (member("c1", "t", owned={"t": [1]}), member("c2", "t", owned={"t": [0]}), member("c3", "t")),
        {"c1": ["t-1", "t-3"], "c2": ["t-0", "t-4"], "c3": ["t-2"]},
    ),
    "everybody reaches its quota by the free partitions": (
        {"t": 4},
        (member("c1", "t", owned={"t": [0, 1]}), member("c2", "t", owned={"t": [2]}), member("c3", "t")),
        {"c1": ["t-0", "t-1"], "c2": ["t-2"], "c3": ["t-3"]},
    ),
    "a member joins": (
        {"t": 3},
        (member("c1", "t", owned={"t": [0, 1, 2]}), member("c2", "t")),
        {"c1": ["t-0", "t-1"], "c2": ["t-2"]},
    ),
    "a member left": ({"t": 3}, (member("c2", "t", owned={"t": [2]}),), {"c2": ["t-0", "t-1", "t-2"]}),
    "the leader left": (
        {"t": 3},
        (
            member("c2", "t", owned={"t": [1]}),
            member("c3", "t", owned={"t": [2]}),
            member("c4", "t", owned={"t": [0]}),
        ),
        {"c2": ["t-1"], "c3": ["t-2"], "c4": ["t-0"]},
    ),
    "fewer partitions than members": (
        {"t": 2},
        (member("a", "t"), member("b", "t", owned={"t": [0]}), member("c", "t", owned={"t": [1]})),
        {"a": [], "b": ["t-0"], "c": ["t-1"]},
    ),
    "owner unsubscribed, and so did everybody": (
        {"t": 2, "old": 2},
        (member("a", "t", owned={"old": [0, 1], "t": [0]}), member("b", "t", owned={"t": [1]})),
        {"a": ["t-0"], "b": ["t-1"]},
    ),
    "subscription to an empty topic is not unequal": (
        {"t": 2, "empty": 0},
        (member("a", "t", "empty"), member("b", "t")),
        {"a": ["t-0"], "b": ["t-1"]},
    ),
    "KIP-615: two missing at one member are given by two others": (
        {"t": 9},
        (
            member("a", "t", owned={"t": [0, 1, 2]}),
            member("b", "t", owned={"t": [3, 4, 5]}),
            member("c", "t", owned={"t": [6, 7, 8]}),
            member("d", "t"),
        ),
        {"a": ["t-0", "t-1", "t-2"], "b": ["t-3", "t-4"], "c": ["t-6", "t-7"], "d": ["t-5", "t-8"]},
    ),
    "KIP-341: a member that was away repeats a claim that is no longer true": (
        {"t": 2},
        (
            member("away", "t", owned={"t": [0, 1]}, generation=3),
            member("live", "t", owned={"t": [0]}, generation=4),
        ),
        {"away": ["t-1"], "live": ["t-0"]},
    ),
    "stale claims that nobody contests stand": (
        {"t": 5},
        (
            member("c1", "t", owned={"t": [0, 2]}, generation=10),
            member("c2", "t", owned={"t": [1, 3]}, generation=9),
            member("c3", "t", generation=-1),
        ),
        {"c1": ["t-0", "t-2"], "c2": ["t-1", "t-3"], "c3": ["t-4"]},
    ),
    "claims without a generation lose to those with one": (
        {"t": 3},
        (
            member("v0", "t", owned={"t": [0, 2]}, generation=-1),
            member("v1", "t", owned={"t": [0, 1]}, generation=0),
        ),
        {"v0": ["t-2"], "v1": ["t-0", "t-1"]},
    ),
}


@EVERY_STICKY
@pytest.mark.parametrize(("partitions", "members", "expected"), EXACT.values(), ids=list(EXACT))
def test_equal_subscriptions_give_one_assignment(
    assign: Assign, partitions: Mapping[str, int], members: tuple[Member, ...], expected: dict[str, list[str]]
) -> None:
    assert assigned(assign, group(partitions, *members)) == expected


ALL = ("t0", "t1", "t2", "t3")
NESTED = {f"t{i}": i for i in range(1, 7)}
# id: partitions, members, sorted counts, moves
UNEQUAL: dict[str, tuple[dict[str, int], tuple[Member, ...], list[int], int]] = {
    "one narrow topic each, one member for both": (
        {"t1": 3, "t2": 2},
        (member("c1", "t1"), member("c2", "t1", "t2"), member("c3", "t1")),
        [1, 2, 2],
        5,
    ),
    "dealing in turn would give four to the last": (
        {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
        (
            member("c1", "t1", "t2", "t3", "t4", "t5"),
            member("c2", "t1", "t3", "t5"),
            member("c3", "t1", "t3", "t5"),
            member("c4", "t1", "t2", "t3", "t4", "t5"),
        ),
        [2, 2, 2, 2],
        8,
    ),
    "a chain of two moves evens the counts": (
        dict.fromkeys(("t1", "t2", "t3", "t4", "t5", "t6"), 1),
        (
            member("c1", "t1", "t2", owned={"t1": [0]}),
            member("c2", "t1", "t2", "t3", "t4", owned={"t2": [0], "t3": [0]}),
            member("c3", "t2", "t3", "t4", "t5", "t6", owned={"t4": [0], "t5": [0], "t6": [0]}),
        ),
        [2, 2, 2],
        2,
    ),
    "pairwise even, and still one is idle": (
        {"t0": 2, "t1": 1},
        (
            member("a", "t0", owned={"t0": [0, 1]}),
            member("b", "t0", "t1", owned={"t1": [0]}),
            member("c", "t1"),
        ),
        [1, 1, 1],
        2,
    ),
    "a member subscribes to one topic more": (
        {"t0": 1, "t1": 2, "t2": 3},
        (
            member("c0", "t0", "t1", owned={"t0": [0]}),
            member("c1", "t1", "t2", owned={"t1": [0, 1]}),
            member("c2", "t2", owned={"t2": [0, 1, 2]}),
        ),
        [2, 2, 2],
        2,
    ),
    "a topic was added": (
        {"t1": 3, "t2": 3},
        (
            member("c1", "t1", "t2", owned={"t1": [0, 2]}),
            member("c2", "t1", "t2", owned={"t1": [1]}),
            member("c3", "t2"),
        ),
        [2, 2, 2],
        3,
    ),
    "claims of three generations on one partition": (
        {"t1": 2, "t2": 2},
        (
            member("c1", "t1", owned={"t1": [0]}, generation=8),
            member("c2", "t1", "t2", owned={"t1": [0], "t2": [0]}, generation=10),
            member("c3", "t2", owned={"t2": [0, 1]}, generation=9),
        ),
        [1, 1, 2],
        1,
    ),
    "KIP-54: fresh": (
        {"t0": 1, "t1": 2, "t2": 3},
        (member("C0", "t0"), member("C1", "t0", "t1"), member("C2", "t0", "t1", "t2")),
        [1, 2, 3],
        6,
    ),
    "KIP-54: C0 is lost": (
        {"t0": 1, "t1": 2, "t2": 3},
        (
            member("C1", "t0", "t1", owned={"t1": [0, 1]}),
            member("C2", "t0", "t1", "t2", owned={"t2": [0, 1, 2]}),
        ),
        [3, 3],
        1,
    ),
    "each reads one topic more than the one before; the first left": (
        NESTED,
        tuple(
            member(f"c{i}", *list(NESTED)[:i], owned={f"t{i}": range(i)}) for i in range(2, len(NESTED) + 1)
        ),
        [3, 3, 4, 5, 6],
        1,
    ),
}


@pytest.mark.parametrize(("partitions", "members", "counts", "moves"), UNEQUAL.values(), ids=list(UNEQUAL))
def test_unequal_subscriptions_give_the_most_even_counts_with_the_fewest_moves(
    partitions: Mapping[str, int], members: tuple[Member, ...], counts: list[int], moves: int
) -> None:
    built = group(partitions, *members)

    verdict = validity.check(built, sticky.assign(built), even="optimal")

    assert sorted(verdict.counts.tolist()) == counts
    assert verdict.moves == moves


@pytest.mark.parametrize("generation", [9, -1], ids=["older", "none"])
def test_constrained_sticky_drops_all_that_a_member_of_an_older_generation_claims(generation: int) -> None:
    built = group(
        {"t": 6},
        member("a", "t", owned={"t": [4, 5]}, generation=generation),
        member("b", "t", owned={"t": [0, 1]}, generation=10),
        member("c", "t", generation=10),
    )

    assert assigned(constrained_sticky.assign, built) == {
        "a": ["t-2", "t-3"],
        "b": ["t-0", "t-1"],
        "c": ["t-4", "t-5"],
    }


def test_generation_of_a_member_that_claims_nothing_makes_others_old() -> None:
    built = group(
        {"t": 4},
        member("a", "t", generation=10),
        member("b", "t", owned={"t": [0, 1]}, generation=9),
    )

    assert assigned(constrained_sticky.assign, built) == {"a": ["t-0", "t-1"], "b": ["t-2", "t-3"]}
    assert assigned(partial(constrained_sticky.assign, old_claims="keep"), built) == {
        "a": ["t-2", "t-3"],
        "b": ["t-0", "t-1"],
    }


def test_fixed_partition_stays_with_its_owner_however_old_the_claim() -> None:
    members = (member("a", "t", generation=10), member("b", "t", owned={"t": [0, 1]}, generation=9))
    built = replace(group({"t": 4}, *members), fixed=np.array([True, True, False, False]))

    assert assigned(constrained_sticky.assign, built)["b"] == ["t-0", "t-1"]


@pytest.mark.parametrize(("partitions", "members", "counts", "moves"), UNEQUAL.values(), ids=list(UNEQUAL))
def test_constrained_sticky_refuses_unequal_subscriptions_and_names_a_strategy_that_there_is(
    partitions: Mapping[str, int], members: tuple[Member, ...], counts: list[int], moves: int
) -> None:
    built = group(partitions, *members)

    with pytest.raises(UnequalSubscriptionsError, match="use cooperative-sticky") as refused:
        constrained_sticky.assign(built)

    verdict = validity.check(built, STRATEGIES[refused.value.alternative].assign(built, {}), even="optimal")
    assert (sorted(verdict.counts.tolist()), verdict.moves) == (counts, moves)


def test_kip_54_members_lost_cost_only_their_own_partitions() -> None:
    built = group(
        dict.fromkeys(ALL, 2),
        member("C0", *ALL, owned={"t0": [0], "t1": [1], "t3": [0]}),
        member("C2", *ALL, owned={"t1": [0], "t2": [1]}),
    )

    verdict = validity.check(built, sticky.assign(built), even="group")

    assert (verdict.counts.tolist(), verdict.kept, verdict.moves) == ([4, 4], 5, 3)


@pytest.mark.parametrize("claims_differ", [False, True], ids=["same claims", "other claims beside"])
@pytest.mark.parametrize("subscribed", [("t",), ("t", "u")], ids=["equal", "unequal"])
def test_partition_claimed_twice_in_one_generation_is_owned_by_neither(
    subscribed: tuple[str, ...], claims_differ: bool
) -> None:
    built = group(
        {"t": 3, "u": 0 if subscribed == ("t",) else 1},
        member("c1", *subscribed, owned={"t": [0, 1] if claims_differ else [0]}),
        member("c2", "t", owned={"t": [0, 2] if claims_differ else [0]}),
        member("c3", "t"),
    )

    verdict = validity.check(built, sticky.assign(built), even="optimal")

    assert built.owner[0] == -1
    assert verdict.kept == (2 if claims_differ else 0)
