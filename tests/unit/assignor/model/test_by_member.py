import numpy as np
import pytest

from assignor.model.arrays import stable_order
from assignor.model.by_member import by_member, by_topic
from tests.support.assignors.groups import equal_group, group, member


def test_members_topics_and_numbers_are_in_order() -> None:
    built = group({"b": 3, "a": 2}, member("m2", "a", "b"), member("m1", "a", "b"), member("m0", "a"))

    placed = by_member(built, np.array([1, 0, 2, 1, 2], np.int32))

    assert placed == {"m0": {"a": (1,)}, "m1": {"a": (0,), "b": (1,)}, "m2": {"b": (0, 2)}}
    assert list(placed) == ["m0", "m1", "m2"]
    assert list(placed["m1"]) == ["a", "b"]


def test_member_without_partitions_is_empty_and_a_partition_without_member_is_left_out() -> None:
    built = group({"t": 2}, member("a", "t"), member("b", "t"))

    assert by_member(built, np.array([-1, 0], np.int32)) == {"a": {"t": (1,)}, "b": {}}
    assert by_topic(built.topics, np.array([0])) == {"t": (0,)}


def test_members_with_the_same_topics_have_entries_of_their_own() -> None:
    built = group({"a": 2, "b": 2}, member("m1", "a", "b"), member("m2", "a", "b"))

    placed = by_member(built, np.array([0, 1, 1, 0], np.int32))
    placed["m1"]["a"] = ()

    assert placed == {"m1": {"a": (), "b": (1,)}, "m2": {"a": (1,), "b": (0,)}}


def test_nothing_is_nothing() -> None:
    assert by_member(group({}), np.zeros(0, np.int32)) == {}
    assert by_topic(group({"t": 2}).topics, np.zeros(0, np.int64)) == {}


def test_more_members_than_a_short_sort_key_can_tell_apart_are_told_apart() -> None:
    built = equal_group(70_000, 1, 70_000)

    placed = by_member(built, np.arange(70_000, dtype=np.int32)[::-1])

    assert [placed[f"m{m:06d}"]["t000000"] for m in (0, 65_536, 69_999)] == [(69_999,), (4463,), (0,)]


@pytest.mark.parametrize("below", [65_536, 65_537], ids=["16 bits", "more"])
def test_stable_order_keeps_equal_keys_in_their_order(below: int) -> None:
    keys = np.array([below - 1, 0, below - 1, 0, 3])

    assert stable_order(keys, below=below).tolist() == [1, 3, 4, 0, 2]
