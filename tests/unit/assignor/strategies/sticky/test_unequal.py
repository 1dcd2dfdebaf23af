import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.model.group import Group
from assignor.strategies.sticky.unequal.blocks import Block
from assignor.strategies.sticky.unequal.moves import fewest_moves
from assignor.strategies.sticky.unequal.solver import assign_unequal
from tests.support.assignors.even_judge import has_better_exchange
from tests.support.assignors.groups import by_name, group, member


@pytest.mark.parametrize(
    ("built", "counts", "moves"),
    [
        (
            group(
                {"t": 2, "u": 1},
                member("a", "t", owned={"t": [0, 1]}),
                member("b", "t", "u", owned={"u": [0]}),
                member("c", "u"),
            ),
            [1, 1, 1],
            2,
        ),
        (
            group(
                {"t": 1, "u": 1, "v": 1, "w": 2},
                member("a", "t"),
                member("b", "t", "u", owned={"t": [0]}),
                member("c", "u", "v", owned={"u": [0]}),
                member("d", "v", "w", owned={"v": [0]}),
                member("e", "w", owned={"w": [0, 1]}),
            ),
            [1, 1, 1, 1, 1],
            4,
        ),
        (
            group(
                {"t": 9, "u": 4},
                member("a", "t", owned={"t": list(range(9))}),
                member("b", "t", "u", owned={"u": [0, 1]}),
                member("c", "u", owned={"u": [2, 3]}),
            ),
            [5, 4, 4],
            6,
        ),
        (
            group({"t": 7, "u": 2}, member("a", "t"), member("b", "u"), member("c", "u")),
            [7, 1, 1],
            9,
        ),
        (
            group(
                {"t": 3, "u": 2},
                member("a", "t", owned={"t": [0]}),
                member("b", "t", "u", owned={"t": [1, 2]}),
                member("c", "u", owned={"u": [0, 1]}),
            ),
            [1, 2, 2],
            0,
        ),
        (
            group(
                {"t": 3, "u": 2},
                member("a", "t", owned={"t": [0, 1]}),
                member("b", "t", "u", owned={"t": [2]}),
                member("c", "u", owned={"u": [0, 1]}),
            ),
            [2, 1, 2],
            0,
        ),
    ],
    ids=[
        "two moves to an idle member",
        "four moves to an idle member",
        "one move for each partition along a path",
        "a topic only one member reads",
        "larger counts where they are: b and c",
        "larger counts where they are: a and c",
    ],
)
def test_counts_are_most_even_with_the_fewest_moves(built: Group, counts: list[int], moves: int) -> None:
    assignment = assign_unequal(built)

    verdict = validity.check(built, assignment, even="optimal")
    assert (verdict.counts.tolist(), verdict.moves) == (counts, moves)


@pytest.mark.parametrize(
    ("built", "counts", "moves"),
    [
        (
            group(
                {"t": 4, "u": 3, "v": 3},
                member("a", "t", "u", "v", owned={"u": [0, 1, 2], "v": [0]}),
                member("b", "t", "u", "v", owned={"v": [1]}),
                member("c", "t", "v", owned={"t": [0, 1, 2, 3], "v": [2]}),
                member("d", "v"),
            ),
            [3, 2, 3, 2],
            3,
        ),
        (
            group(
                {"t": 44, "u": 17, "v": 36},
                member("a", "v", owned={"v": range(13)}),
                member("b", "t", owned={"t": range(21)}),
                member("c", "t", "v", owned={"t": range(21, 33), "v": range(13, 36)}),
                member("d", "t", "u", owned={"t": range(33, 44), "u": range(17)}),
            ),
            [24, 24, 24, 25],
            14,
        ),
        (
            group(
                {"t": 3, "u": 10, "v": 8},
                member("a", "v"),
                member("b", "t", "v", owned={"v": range(8)}),
                member("c", "t", "u", owned={"t": [0, 1, 2], "u": [0, 1, 2]}),
                member("d", "t", "u", owned={"u": range(3, 10)}),
            ),
            [5, 5, 5, 6],
            8,
        ),
    ],
    ids=["given up, then regained", "regained up to what was given up", "larger count given back"],
)
def test_earlier_move_is_taken_back_where_that_saves_one(built: Group, counts: list[int], moves: int) -> None:
    assignment = assign_unequal(built)

    verdict = validity.check(built, assignment, even="optimal")
    assert (verdict.counts.tolist(), verdict.moves) == (counts, moves)
    assert not has_better_exchange(built, assignment)


def test_member_keeps_its_first_partitions_by_number_then_topic() -> None:
    built = group(
        {"t": 3, "u": 3, "v": 1},
        member("a", "t", "u", owned={"t": [0, 1, 2], "u": [0, 1, 2]}),
        member("b", "t", "u", "v", owned={"v": [0]}),
    )

    assignment = assign_unequal(built)

    validity.check(built, assignment, even="optimal")
    assert by_name(built, assignment)["a"] == ["t-0", "t-1", "u-0", "u-1"]


def test_new_partitions_are_given_out_by_number_then_topic() -> None:
    built = group({"t": 2, "u": 2, "v": 1}, member("a", "t", "u"), member("b", "t", "u"), member("c", "v"))

    assignment = assign_unequal(built)

    validity.check(built, assignment, even="optimal")
    assert by_name(built, assignment) == {"a": ["t-0", "u-0"], "b": ["t-1", "u-1"], "c": ["v-0"]}


@pytest.mark.parametrize(
    "built",
    [group({}), group({"t": 2}), group({}, member("a", "t")), group({"t": 2}, member("a"), member("b", "u"))],
    ids=["nothing", "no members", "no partitions", "no subscriber"],
)
def test_group_without_anything_to_give_leaves_everything_unassigned(built: Group) -> None:
    assignment = assign_unequal(built)

    verdict = validity.check(built, assignment, even="optimal")
    assert verdict.unassigned == built.n_partitions


def test_partitions_that_nobody_subscribes_to_are_left_out() -> None:
    built = group(
        {"t": 2, "u": 2}, member("a", "t"), member("b", owned={"t": [0], "u": [1]}), member("c", "t")
    )

    assignment = assign_unequal(built)

    verdict = validity.check(built, assignment, even="optimal")
    assert (verdict.counts.tolist(), verdict.unassigned) == ([1, 0, 1], 2)


def test_blocks_of_another_group_are_refused() -> None:
    owned = np.array([[2, 0]], np.int32)
    all_to_second = [
        Block(sets=0, members=0b01, low=0, high=0),
        Block(sets=0b1, members=0b10, low=2, high=2),
    ]

    with pytest.raises(ValueError, match="not those of the group"):
        fewest_moves(owned, np.array([2]), np.array([[True, False]]), all_to_second)
