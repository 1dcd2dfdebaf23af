from dataclasses import replace

import numpy as np
import pytest

from assignor.errors import InvalidAssignmentError
from assignor.evaluation.validity import Even, check
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from tests.support.assignors.groups import group, member


@pytest.fixture
def built() -> Group:
    """Of three topics a may read t, b may read t and u, and nobody reads v."""
    return group(
        {"t": 4, "u": 1, "v": 1},
        member("a", "t", owned={"t": [0, 1]}),
        member("b", "t", "u", owned={"t": [2], "u": [0]}),
    )


SOUND = [0, 0, 1, 1, 1, -1]


def test_sound_assignment_gets_its_figures(built: Group) -> None:
    verdict = check(built, Assignment.complete(built, np.array(SOUND, np.int32)), even="topic")

    assert verdict.counts.tolist() == [2, 3]
    assert (verdict.kept, verdict.moves, verdict.unassigned) == (4, 1, 1)


def test_move_counts_a_revocation_without_a_taker() -> None:
    built = group({"t": 1}, member("a", owned={"t": [0]}))

    verdict = check(built, Assignment.complete(built, np.full(1, -1, np.int32)))

    assert (verdict.kept, verdict.moves) == (0, 1)


@pytest.mark.parametrize(
    ("member_of", "message"),
    [
        ([0, 0, 1, 1, 0, -1], r"does not subscribe, but gets u-0 \(1 partition"),
        ([0, 0, 1, 1, 1, 1], "does not subscribe, but gets v-0"),
        ([0, 0, 1, -1, 1, -1], "no member and no reason for t-3"),
        ([0, 0, 1, 2, 1, -1], "member index outside -1 .. 1"),
        ([0, 0, 1, -2, 1, -1], "member index outside"),
        ([0, 0, 1, 1, 1], "6 partitions, but 5 entries"),
    ],
    ids=["unsubscribed", "topic nobody reads", "incomplete", "no such member", "below -1", "too short"],
)
def test_broken_assignment_is_refused(built: Group, member_of: list[int], message: str) -> None:
    why = Assignment.complete(built, np.array(SOUND, np.int32)).why[: len(member_of)]
    broken = Assignment(member=np.array(member_of, np.int32), why=why)

    with pytest.raises(InvalidAssignmentError, match=message):
        check(built, broken)


@pytest.mark.parametrize(
    ("pid", "why", "message"),
    [
        (0, Unassigned.WITHHELD, "a member and a reason to have none for t-0"),
        (5, Unassigned.WITHHELD, "wrong about whether anybody subscribes to v-0"),
        (0, Unassigned.NOBODY_SUBSCRIBES, "wrong about whether anybody subscribes to t-0"),
    ],
    ids=["member and reason", "false reason", "false claim that nobody reads"],
)
def test_false_reason_is_refused(built: Group, pid: int, why: Unassigned, message: str) -> None:
    sound = Assignment.complete(built, np.array(SOUND, np.int32))
    reasons = sound.why.copy()
    reasons[pid] = why

    with pytest.raises(InvalidAssignmentError, match=message):
        check(built, replace(sound, why=reasons))


@pytest.mark.parametrize(
    ("even", "message"), [("topic", "counts of topic t from 1 to 3"), ("group", "counts from 1 to 4")]
)
def test_uneven_counts_are_refused_where_even_ones_were_promised(
    built: Group, even: Even, message: str
) -> None:
    uneven = Assignment.complete(built, np.array([0, 1, 1, 1, 1, -1], np.int32))

    check(built, uneven)
    with pytest.raises(InvalidAssignmentError, match=message):
        check(built, uneven, even=even)


@pytest.mark.parametrize(
    ("member_of", "message"),
    [
        ([0, 0, 1], "a member with 2 could hand on towards c with 0"),
        ([0, 1, 1], "a member with 2 could hand on towards c with 0"),
    ],
    ids=["over two members", "directly"],
)
def test_counts_that_hand_overs_could_even_are_refused(member_of: list[int], message: str) -> None:
    built = group({"t": 2, "u": 1}, member("a", "t"), member("b", "t", "u"), member("c", "u"))
    uneven = Assignment.complete(built, np.array(member_of, np.int32))

    check(built, uneven)
    with pytest.raises(InvalidAssignmentError, match=message):
        check(built, uneven, even="optimal")


@pytest.mark.parametrize(
    "member_of",
    [[0, 0, 0, 1, 2], [0, 0, 0, 2, 1]],
    ids=["as dealt", "the other way round"],
)
def test_counts_that_subscriptions_keep_apart_are_most_even(member_of: list[int]) -> None:
    built = group({"t": 3, "u": 2}, member("a", "t"), member("b", "u"), member("c", "u"))

    verdict = check(built, Assignment.complete(built, np.array(member_of, np.int32)), even="optimal")

    assert verdict.counts.tolist() == [3, 1, 1]


def test_all_broken_rules_are_named(built: Group) -> None:
    broken = Assignment.complete(built, np.array([-1, 0, 1, 1, 0, -1], np.int32))

    with pytest.raises(InvalidAssignmentError) as caught:
        check(built, broken)

    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("constraint", "member_of", "message"),
    [
        (
            {"fixed": np.array([True] + [False] * 5)},
            [1, 0, 1, 1, 1, -1],
            r"moves the fixed t-0 \(1 partition",
        ),
        ({"closed": np.array([True, False])}, [0, 1, 1, 1, 1, -1], "moves the fixed t-1"),
        (
            {"closed": np.array([True, False])},
            [0, 0, 1, 0, 1, -1],
            "gives a member that follows no plans t-3",
        ),
    ],
    ids=["fixed", "of a closed member", "to a closed member"],
)
def test_what_is_fixed_must_stay_and_closed_members_get_nothing(
    built: Group, constraint: dict[str, np.ndarray], member_of: list[int], message: str
) -> None:
    held = replace(built, **constraint)
    broken = Assignment.complete(held, np.array(member_of, np.int32))

    check(held, Assignment.complete(held, np.array([0, 0, 1, 1, 1, -1], np.int32)))
    check(built, broken)
    with pytest.raises(InvalidAssignmentError, match=message):
        check(held, broken)


def test_nobody_takes_is_no_reason_while_no_subscriber_is_known_to_be_closed(built: Group) -> None:
    sound = Assignment.complete(built, np.array(SOUND, np.int32))
    unread = np.arange(6) == 3

    with pytest.raises(InvalidAssignmentError, match="wrong about whether anybody takes t-3"):
        check(built, sound.without(unread, why=Unassigned.NOBODY_TAKES))
    check(built, sound.without(unread, why=Unassigned.NOBODY_TAKES), closed_known=False)


@pytest.mark.parametrize("even", ["topic", "optimal"])
def test_counts_that_only_fixed_partitions_make_uneven_are_even_enough(even: Even) -> None:
    members = member("a", "t", owned={"t": [0, 1, 2, 3]}), member("b", "t"), member("c", "t")
    held = replace(group({"t": 6}, *members), fixed=np.array([True] * 3 + [False] * 3))

    check(held, Assignment.complete(held, np.array([0, 0, 0, 1, 2, 2], np.int32)), even=even)
    with pytest.raises(InvalidAssignmentError, match="counts"):
        check(held, Assignment.complete(held, np.array([0, 0, 0, 0, 1, 2], np.int32)), even=even)
