"""Kafka's named scenarios for equal subscriptions (AbstractStickyAssignorTest) and the corrections of KIP-615."""

import pytest

from assignor import constrained_sticky, verify
from assignor.errors import UnequalSubscriptionsError
from assignor.group import Group
from tests.support.groups import by_name, group, member


def assigned(built: Group) -> dict[str, list[str]]:
    target = constrained_sticky.assign(built)
    verify.check(built, target, even="group")
    return by_name(built, target)


def test_fresh_partitions_are_dealt_by_number_then_topic() -> None:
    built = group({"t1": 3, "t2": 3}, member("c1", "t1", "t2"), member("c2", "t1", "t2"))

    assert assigned(built) == {"c1": ["t1-0", "t1-1", "t2-0"], "c2": ["t1-2", "t2-1", "t2-2"]}


def test_of_two_members_that_own_the_floor_the_first_gets_the_extra_partition() -> None:
    built = group({"t": 5}, member("c1", "t", owned={"t": [0, 2]}), member("c2", "t", owned={"t": [1, 3]}))

    assert assigned(built) == {"c1": ["t-0", "t-2", "t-4"], "c2": ["t-1", "t-3"]}


def test_when_two_members_own_the_ceiling_and_only_one_may_one_partition_moves() -> None:
    built = group(
        {"t1": 2, "t2": 2},
        member("c1", "t1", "t2", owned={"t1": [0], "t2": [0]}),
        member("c2", "t1", "t2", owned={"t1": [1], "t2": [1]}),
        member("c3", "t1", "t2"),
    )

    verdict = verify.check(built, constrained_sticky.assign(built), even="group")

    assert assigned(built) == {"c1": ["t1-0", "t2-0"], "c2": ["t1-1"], "c3": ["t2-1"]}
    assert verdict.moves == 1


def test_members_fill_up_to_the_floor_before_anybody_gets_an_extra() -> None:
    built = group(
        {"t": 5},
        member("c1", "t", owned={"t": [1]}),
        member("c2", "t", owned={"t": [0]}),
        member("c3", "t"),
    )

    assert assigned(built) == {"c1": ["t-1", "t-3"], "c2": ["t-0", "t-4"], "c3": ["t-2"]}


def test_member_joins_and_another_leaves() -> None:
    joined = group({"t": 3}, member("c1", "t", owned={"t": [0, 1, 2]}), member("c2", "t"))
    left = group({"t": 3}, member("c2", "t", owned={"t": [2]}))

    assert assigned(joined) == {"c1": ["t-0", "t-1"], "c2": ["t-2"]}
    assert assigned(left) == {"c2": ["t-0", "t-1", "t-2"]}


def test_two_missing_at_one_member_are_given_by_two_others() -> None:
    owned = {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7, 8]}
    built = group({"t": 9}, *(member(m, "t", owned={"t": o}) for m, o in owned.items()), member("d", "t"))

    counts = [len(partitions) for partitions in assigned(built).values()]

    assert counts == [3, 2, 2, 2]


def test_fewer_partitions_than_members_leave_some_with_none() -> None:
    built = group(
        {"t": 2}, member("a", "t"), member("b", "t", owned={"t": [0]}), member("c", "t", owned={"t": [1]})
    )

    assert assigned(built) == {"a": [], "b": ["t-0"], "c": ["t-1"]}


def test_every_topic_is_spread_over_the_members_when_they_double() -> None:
    topics = ("t1", "t2")
    owned = dict.fromkeys(topics, range(12))
    built = group(dict.fromkeys(topics, 12), member("a", *topics, owned=owned), member("b", *topics))

    for partitions in assigned(built).values():
        assert sum(name.startswith("t1") for name in partitions) == 6


def test_owner_that_no_longer_subscribes_keeps_nothing_of_the_topic() -> None:
    built = group(
        {"t": 2, "old": 2},
        member("a", "t", owned={"old": [0, 1], "t": [0]}),
        member("b", "t", owned={"t": [1]}),
    )

    verdict = verify.check(built, constrained_sticky.assign(built), even="group")

    assert assigned(built) == {"a": ["t-0"], "b": ["t-1"]}
    assert (verdict.kept, verdict.unassigned, verdict.moves) == (2, 2, 2)


def test_unequal_subscriptions_are_refused_with_the_strategy_to_use() -> None:
    built = group({"t": 1, "u": 1}, member("a", "t", "u"), member("b", "t"))

    with pytest.raises(UnequalSubscriptionsError, match="use cooperative-sticky"):
        constrained_sticky.assign(built)


def test_subscription_to_an_empty_topic_is_not_unequal() -> None:
    built = group({"t": 2, "empty": 0}, member("a", "t", "empty"), member("b", "t"))

    assert assigned(built) == {"a": ["t-0"], "b": ["t-1"]}


@pytest.mark.parametrize(
    "built",
    [group({}), group({"t": 2}), group({}, member("a", "t")), group({"t": 2}, member("a"))],
    ids=["nothing", "no members", "no partitions", "no subscription"],
)
def test_group_with_nothing_to_assign_gets_an_empty_assignment(built: Group) -> None:
    assert not any(assigned(built).values())
