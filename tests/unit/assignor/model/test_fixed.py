"""What a group says about fixed partitions and closed members."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.errors import InvalidGroupError
from assignor.model.group import Group
from tests.support.assignors.groups import group, member


@pytest.fixture
def built() -> Group:
    """Member a reads t and owns t-0; b reads t and u and owns t-1; nobody owns t-2 and u-0."""
    return group(
        {"t": 3, "u": 1}, member("a", "t", owned={"t": [0]}), member("b", "t", "u", owned={"t": [1]})
    )


def test_nothing_is_fixed_by_default(built: Group) -> None:
    assert not built.is_constrained()
    assert not built.is_fixed().any()
    assert built.takers is built.subscriptions


def test_partition_without_an_owner_cannot_be_fixed(built: Group) -> None:
    fixed = replace(built, fixed=np.array([True, False, True, False]))

    assert fixed.is_constrained()
    assert fixed.is_fixed().tolist() == [True, False, False, False]


def test_all_that_a_closed_member_owns_is_fixed(built: Group) -> None:
    closed = replace(built, closed=np.array([False, True]))

    assert closed.is_fixed().tolist() == [False, True, False, False]
    assert [closed.takers.of_topic(t).tolist() for t in (0, 1)] == [[0], []]
    assert closed.placeable().tolist() == [True, True, True, False]
    assert not closed.has_equal_takers()


def test_nobody_closed_is_as_nothing_said(built: Group) -> None:
    open_ = replace(built, closed=np.zeros(2, np.bool_))

    assert open_.takers is open_.subscriptions
    assert not open_.is_constrained()


def test_group_of_closed_members_has_no_takers(built: Group) -> None:
    closed = replace(built, closed=np.ones(2, np.bool_))

    assert closed.takers.subscriber_counts().tolist() == [0, 0]
    assert closed.placeable().tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fixed": np.zeros(3, np.bool_)}, "fixed needs one entry for each of 4 partitions"),
        ({"closed": np.zeros(3, np.bool_)}, "closed needs one entry for each of 2 members"),
    ],
)
def test_wrong_length_is_refused(built: Group, changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InvalidGroupError, match=message):
        replace(built, **changes)
