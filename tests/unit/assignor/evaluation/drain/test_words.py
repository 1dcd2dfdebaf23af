import math
from dataclasses import replace

import numpy as np
import pytest

from assignor.evaluation.drain.bound import group_bound
from assignor.evaluation.drain.words import cause_in_words, obstacles, time_in_words
from assignor.model.group import Group
from tests.support.assignors.drain_groups import lag_sticky, owned
from tests.support.assignors.groups import group, member


@pytest.mark.parametrize(
    ("time_s", "words"),
    [(0.0, "0 s"), (0.5884, "0.588 s"), (112.5, "112 s"), (120, "2 min"), (7300, "2.03 h"), (1e6, "11.6 d")],
)
def test_times_have_three_digits_and_a_unit(time_s: float, words: str) -> None:
    assert time_in_words(time_s) == words


def test_never_is_a_word() -> None:
    assert time_in_words(math.inf) == "never"


def _reads_apart(rates: tuple[float, float]) -> Group:
    """Member a reads t and b reads u; both drain 10 records/s."""
    members = [member("a", "t", capacity=10.0), member("b", "u", capacity=10.0)]
    halves = {topic: [rate / 2] * 2 for topic, rate in zip("tu", rates, strict=True)}
    return group({"t": 2, "u": 2}, *members, rates=halves)


OBSTACLES = {
    "partition": (
        owned([1], [], rates=[[17.1], []]),
        [
            "partition t-0 alone needs 1.8 members (receives 7.1 records/s more than the fastest drains): add partitions"
        ],
    ),
    "exactly a member, with lag left": (
        owned([1, 0], [], rates=[[10.0, 0.0], []]),
        ["partition t-0 alone needs more than one member: add partitions"],
    ),
    "group": (
        owned([0] * 6, [], rates=[[5.0] * 6, []]),
        [
            "the group runs at 150 % of its capacity (receives 10 records/s more than it drains): add 2 members"
        ],
    ),
    "part of the group": (
        _reads_apart((4.0, 14.0)),
        [
            (
                "the part of the group that reads u runs at 140 % of its capacity "
                "(receives 4 records/s more than it drains): add 1 member"
            )
        ],
    ),
    "bin packing": (
        owned([0] * 3, [], rates=[[6.0] * 3, []]),
        ["the busiest partitions cannot be shared out so that no member gets too much: add partitions"],
    ),
    "partition and group": (
        owned([0, 0], [], rates=[[25.0, 0.0], []]),
        [
            "the group runs at 125 % of its capacity (receives 5 records/s more than it drains): add 1 member",
            "partition t-0 alone needs 2.5 members (receives 15 records/s more than the fastest drains): add partitions",
        ],
    ),
    "many partitions": (
        owned(
            [0] * 5, [], [], [], [], [], [], rates=[[11.0, 12.0, 13.0, 11.0, 11.0], [], [], [], [], [], []]
        ),
        [
            "partition t-2 alone needs 1.3 members (receives 3 records/s more than the fastest drains): add partitions",
            "partition t-1 alone needs 1.2 members (receives 2 records/s more than the fastest drains): add partitions",
            "partition t-0 alone needs 1.1 members (receives 1 records/s more than the fastest drains): add partitions",
            "so do 2 more partitions",
        ],
    ),
    "members that hardly drain": (
        owned([1, 1], [1], rates=[[500.0, 500.0], [9.0]], capacity=1e-6),
        [
            (
                "the group runs at more than ten times its capacity (receives 1,009 records/s more than it drains): "
                "its members hardly drain, are they stuck?"
            )
        ],
    ),
    "one that hardly drains": (
        group(
            {"t": 3},
            member("a", "t", capacity=1e-6),
            member("b", "t", capacity=10.0),
            member("c", "t", capacity=10.0),
            rates={"t": [8.0, 8.0, 8.0]},
        ),
        [
            (
                "the group runs at 120 % of its capacity (receives 4 records/s more than it drains): "
                "1 of its 3 members hardly drains, is it stuck?"
            )
        ],
    ),
    "none": (owned([9], [], rates=[[9.0], []]), []),
    "capacity unknown": (group({"t": 1}, member("a", "t"), rates={"t": [1e9]}), []),
}


@pytest.mark.parametrize(("built", "words"), OBSTACLES.values(), ids=list(OBSTACLES))
def test_what_keeps_a_group_from_being_drained_is_named(built: Group, words: list[str]) -> None:
    assert list(obstacles(built, group_bound(built))) == words


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (
            owned([900], []),
            "partition t-0 alone takes 90 s on the fastest member that may read it: add partitions",
        ),
        (owned([900] * 4, []), "the group would take 3 min with all work shared evenly: add members"),
        (
            owned([900] * 3, []),
            "its largest partitions cannot be shared out to take less than 3 min: add partitions",
        ),
        (
            owned([600, 500, 300, 300], []),
            "every way to share out its partitions takes 90 s or more: add members, or more partitions",
        ),
        (owned([50], []), "partition t-0 alone takes 5 s on the fastest member that may read it"),
        (owned([0] * 4, [], rates=[[1.0] * 4, []]), "the group would take 0 s with all work shared evenly"),
        (owned([9] * 3, []), "its largest partitions cannot be shared out to take less than 1.8 s"),
        (
            owned([900] * 4, [], capacity=1e-4),
            "the group would take 208 d with all work shared evenly: its members hardly drain, are they stuck?",
        ),
    ],
    ids=[
        "partition",
        "shares",
        "bin packing",
        "all tried",
        "partition in no time",
        "shares in no time",
        "bin packing in no time",
        "hardly drain",
    ],
)
def test_what_keeps_a_group_from_being_drained_sooner_is_named(built: Group, words: str) -> None:
    bound = group_bound(built)

    assert bound is not None
    assert cause_in_words(built, bound) == words


def test_topics_of_a_slow_part_are_named_up_to_three() -> None:
    topics = ("a", "b", "c", "d", "e")
    members = [member("slow", *topics, capacity=10.0), member("fast", "z", capacity=10.0)]
    built = group(dict.fromkeys((*topics, "z"), 1), *members, lags={topic: [90] for topic in topics})
    bound = group_bound(built)

    assert bound is not None
    assert "the part of the group that reads a, b, c and 2 more topics" in cause_in_words(built, bound)


def test_what_is_fixed_on_a_member_is_a_bound_and_named_as_its_cause() -> None:
    lagging = replace(owned([300, 200], [100]), fixed=np.array([True, True, False]))
    bound = group_bound(lagging)

    assert bound is not None
    assert bound.time_s == 50.0
    assert cause_in_words(lagging, bound) == "the partitions fixed on member m0 take 50 s"


def test_member_that_never_drains_what_is_fixed_on_it_is_an_obstacle() -> None:
    lagging = replace(owned([1, 1], [], rates=[[6.0, 6.0], []]), fixed=np.array([True, True]))

    assert obstacles(lagging, group_bound(lagging)) == (
        "more arrives in the partitions fixed on member m0 than it drains: release some of them",
    )


def test_that_every_way_was_tried_is_said_of_what_is_not_fixed() -> None:
    lagging = replace(owned([600], [500], [300, 300, 200]), fixed=np.arange(5) == 0)
    bound = group_bound(lagging)

    assert bound is not None
    assert cause_in_words(lagging, bound) == (
        "every way to share out the partitions that are not fixed takes 70 s or more: add members, or more partitions"
    )


def test_that_no_way_around_what_is_fixed_keeps_up_is_an_obstacle() -> None:
    lagging = replace(owned([0, 0], [0, 0], rates=[[4.0, 4.0], [4.0, 7.0]]), fixed=np.arange(4) % 2 == 0)

    assert obstacles(lagging, group_bound(lagging)) == (
        "the busiest partitions cannot be shared out around what is fixed so that no member gets too much: add members",
    )


def test_partition_that_no_member_may_be_given_is_an_obstacle_also_where_all_else_drains() -> None:
    lagging = replace(
        group(
            {"t": 2, "u": 2},
            member("m0", "t", owned={"t": [0]}, capacity=10.0),
            member("m1", "u", owned={"u": [0, 1]}, capacity=10.0),
            lags={"t": [0, 1], "u": [0, 5]},
        ),
        closed=np.array([True, False]),
    )
    bound = group_bound(lagging)
    words = "partition t-1 has no owner, and no subscriber of its topic follows plans"

    assert bound is not None
    assert math.isinf(bound.time_s)
    assert obstacles(lagging, bound) == (words,)
    assert words in lag_sticky(lagging).remarks
