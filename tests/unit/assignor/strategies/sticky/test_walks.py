"""Kafka's scenarios of the sticky assignors in which a group changes again and again."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.model.by_member import Placed, by_member
from assignor.model.group import Group
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.groups import group, member

Owned = Mapping[str, Placed]


def rebalanced(
    partitions: Mapping[str, int], topics: Mapping[str, Sequence[str]], owned: Owned
) -> tuple[dict[str, Placed], validity.Verdict]:
    """What each member gets when it claims what it had, and the figures."""
    built = group(partitions, *(member(m, *topics[m], owned=owned.get(m, {})) for m in topics))
    target = sticky.assign(built)
    return by_member(built, target.member), validity.check(built, target, even="optimal")


def everyone(members: Sequence[str], topics: Sequence[str]) -> dict[str, Sequence[str]]:
    return dict.fromkeys(members, topics)


def n_placed(placed: Placed) -> int:
    return sum(map(len, placed.values()))


def test_every_topic_stays_spread_while_members_come_and_go() -> None:
    partitions = {"t1": 12, "t2": 12}
    owned: dict[str, Placed] = {}
    for members, share in (("a", 12), ("ab", 6), ("abcd", 3), ("bd", 6)):
        owned, _ = rebalanced(partitions, everyone(members, ("t1", "t2")), owned)

        assert {len(numbers) for placed in owned.values() for numbers in placed.values()} == {share}


def test_two_members_come_and_two_leave() -> None:
    partitions = {"t1": 3, "t2": 4}
    topics = ("t1", "t2")
    two, _ = rebalanced(partitions, everyone(("c1", "c2"), topics), {})

    four, joined = rebalanced(partitions, everyone(("c1", "c2", "c3", "c4"), topics), two)
    last, left = rebalanced(partitions, everyone(("c3", "c4"), topics), four)

    assert (joined.kept, joined.moves) == (4, 3)
    assert left.kept == n_placed(four["c3"]) + n_placed(four["c4"])
    assert sorted(map(n_placed, last.values())) == [3, 4]


def test_topic_that_is_added_and_removed_again_leaves_the_other_where_it_is() -> None:
    members = ("c1", "c2")
    before, _ = rebalanced({"t1": 3}, everyone(members, ("t1",)), {})

    both, _ = rebalanced({"t1": 3, "t2": 3}, everyone(members, ("t1", "t2")), before)
    after, removed = rebalanced({"t2": 3}, everyone(members, ("t2",)), both)

    assert all(set(both[m].get("t1", ())) >= set(before[m].get("t1", ())) for m in members)
    assert all(set(after[m]["t2"]) >= set(both[m]["t2"]) for m in members)
    assert removed.moves == 0


def test_partitions_of_a_member_that_leaves_are_all_that_moves() -> None:
    partitions = {f"t{i:02d}": i for i in range(1, 15)}
    members = [f"c{i}" for i in range(1, 9)]
    before, _ = rebalanced(partitions, everyone(members, list(partitions)), {})

    _, verdict = rebalanced(partitions, everyone(members[1:], list(partitions)), before)

    assert verdict.moves == n_placed(before["c1"])


def test_nobody_loses_a_partition_to_anybody_but_the_newcomer() -> None:
    partitions = {f"t{i:02d}": i for i in range(1, 20)}
    members = [f"c{i}" for i in range(1, 11)]
    before, _ = rebalanced(partitions, everyone(members[:9], list(partitions)), {})

    after, verdict = rebalanced(partitions, everyone(members, list(partitions)), before)

    assert verdict.moves == n_placed(after["c10"]) == sum(partitions.values()) // 10


def test_members_that_leave_a_group_of_random_subscriptions() -> None:
    random = np.random.default_rng(4)
    partitions = {f"t{i:02d}": int(random.integers(1, 11)) for i in range(40)}
    topics = {
        f"c{i:03d}": random.choice(list(partitions), int(random.integers(1, 20)), replace=False).tolist()
        for i in range(200)
    }
    before, _ = rebalanced(partitions, topics, {})
    staying = {m: topics[m] for m in sorted(topics)[25:175]}

    after, verdict = rebalanced(partitions, staying, before)

    again, settled = rebalanced(partitions, staying, after)
    assert verdict.moves >= sum(n_placed(before[m]) for m in topics if m not in staying)
    assert (again, settled.moves) == (after, 0)


def read_by_everyone(n_topics: int, n_partitions: int, n_members: int) -> Group:
    topics = [f"t{i}" for i in range(n_topics)]
    return group(dict.fromkeys(topics, n_partitions), *(member(f"c{i}", *topics) for i in range(n_members)))


def with_a_narrow_member() -> Group:
    topics = [f"t{i}" for i in range(500)]
    wide = (member(f"c{i}", *topics) for i in range(1999))
    return group(dict.fromkeys(topics, 2000), *wide, member("narrow", topics[0]))


def two_halves() -> Group:
    topics = [f"t{i}" for i in range(100)]
    members = (member(f"c{i}", *(topics[:50] if i < 125 else topics[50:])) for i in range(500))
    return group(dict.fromkeys(topics, 200), *members)


@pytest.mark.parametrize(
    ("build", "least", "most"),
    [
        (lambda: read_by_everyone(1, 2100, 2100), 1, 1),
        (lambda: read_by_everyone(500, 2000, 2000), 500, 500),
        (with_a_narrow_member, 500, 500),
        (two_halves, 26, 80),
    ],
    ids=["KIP-615", "a million partitions", "and one member of one topic", "a quarter reads one half"],
)
def test_large_group_is_planned_to_the_optimum(build: Callable[[], Group], least: int, most: int) -> None:
    built = build()

    verdict = validity.check(built, sticky.assign(built), even="optimal")

    assert (verdict.counts.min(), verdict.counts.max()) == (least, most)
