import numpy as np
import pytest
from pipeline.planning.frozen import pinned, with_frozen

from assignor.evaluation import validity
from assignor.model.assignment import Unassigned
from assignor.strategies import stream_join
from tests.support.groups import by_name, group, member

JOIN = ("clicks", "impressions")


@pytest.mark.parametrize(
    ("by_number", "left"),
    [
        (True, ["clicks-0", "clicks-1", "clicks-2", "impressions-0", "impressions-1", "impressions-2"]),
        (False, ["clicks-0", "clicks-1", "clicks-2", "impressions-0", "impressions-1"]),
    ],
    ids=["joined", "each for itself"],
)
def test_pinned_partition_holds_those_that_are_joined_with_it(by_number: bool, left: list[str]) -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned=dict.fromkeys(JOIN, (0, 1, 2, 3))),
        member("B", *JOIN),
    )
    target = stream_join.assign(built)
    frozen = pinned(built, (), {"clicks": (2,)})

    held = with_frozen(built, target, frozen, by_number=by_number)

    validity.check(built, held)
    assert by_name(built, target)["A"] == ["clicks-0", "clicks-1", "impressions-0", "impressions-1"]
    assert by_name(built, held)["A"] == left
    assert held.remarks == (
        f"{1 + by_number} partition(s) that would move stay with their owner: pinned, or moved recently",
    )


@pytest.mark.parametrize(
    ("others", "third"),
    [((0, 1, 3), "A"), ((0, 1, 2, 3), "A")],
    ids=["partner of nobody", "partner of the same member"],
)
def test_partner_goes_where_the_pinned_partition_stays(others: tuple[int, ...], third: str) -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned={"clicks": (0, 1, 2, 3), "impressions": others}),
        member("B", *JOIN),
    )

    held = with_frozen(built, stream_join.assign(built), pinned(built, (), {"clicks": (2,)}), by_number=True)

    validity.check(built, held)
    assert "clicks-2" in by_name(built, held)[third]
    assert "impressions-2" in by_name(built, held)[third]


def test_split_number_is_joined_at_the_pinned_partition() -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned={"clicks": (0, 1, 2, 3)}),
        member("B", *JOIN, owned={"impressions": (0, 1, 2, 3)}),
    )

    held = with_frozen(built, stream_join.assign(built), pinned(built, ("clicks",), {}), by_number=True)

    validity.check(built, held)
    assert by_name(built, held) == {"A": [f"{topic}-{n}" for topic in JOIN for n in range(4)], "B": []}


def test_number_that_is_pinned_at_two_members_does_not_move() -> None:
    built = group(
        {"clicks": 4, "impressions": 4, "views": 4},
        member("A", *JOIN, "views", owned={"clicks": (2,), "views": (0, 1, 2, 3)}),
        member("B", *JOIN, "views", owned={"impressions": (2,)}),
    )
    frozen = pinned(built, (), {"clicks": (2,), "impressions": (2,)})

    held = with_frozen(built, stream_join.assign(built), frozen, by_number=True)

    validity.check(built, held)
    assert {"clicks-2", "views-2"} <= set(by_name(built, held)["A"])
    assert "impressions-2" in by_name(built, held)["B"]


def test_partner_that_the_owner_does_not_read_is_left_out_with_the_reason() -> None:
    built = group(
        dict.fromkeys(JOIN, 2),
        member("A", "clicks", owned={"clicks": (0, 1)}),
        member("B", *JOIN),
    )
    target = stream_join.assign(built)

    held = with_frozen(built, target, pinned(built, ("clicks",), {}), by_number=True)

    validity.check(built, held)
    assert held.why[2:].tolist() == [Unassigned.OWNER_DOES_NOT_READ] * 2


def test_pin_holds_nothing_that_nobody_owns() -> None:
    built = group({"t": 2}, member("A", "t", owned={"t": (0,)}))

    assert pinned(built, ("t",), {}).tolist() == [True, False]
    np.testing.assert_array_equal(pinned(built, (), {"t": ()}), pinned(built, ("t",), {}))
