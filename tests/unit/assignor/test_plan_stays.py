import numpy as np
import pytest

from assignor import stream_join, verify
from assignor.plan_stays import kept, pinned
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
    stays = pinned(built, (), {"clicks": (2,)})

    held = kept(built, target, stays, by_number=by_number)

    verify.check(built, held)
    assert by_name(built, target)["A"] == ["clicks-0", "clicks-1", "impressions-0", "impressions-1"]
    assert by_name(built, held)["A"] == left
    assert held.remarks == (f"{1 + by_number} partitions stay that would move: pinned, or moved lately",)


def test_pin_holds_nothing_that_nobody_owns() -> None:
    built = group({"t": 2}, member("A", "t", owned={"t": (0,)}))

    assert pinned(built, ("t",), {}).tolist() == [True, False]
    np.testing.assert_array_equal(pinned(built, (), {"t": ()}), pinned(built, ("t",), {}))
