from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assignor.errors import InvalidGroupError
from assignor.model.members import build_group
from assignor.model.topics import Topics
from tests.support.assignors.groups import equal_group, group, member


def test_static_members_come_first_by_instance_id() -> None:
    built = group(
        {"t": 1},
        member("a", "t"),
        member("y", "t", instance_id="y2"),
        member("z", "t", instance_id="y1"),
        member("B", "t"),
    )

    assert built.member_ids == ("z", "y", "B", "a")


def test_members_with_one_instance_id_are_ordered_by_member_id() -> None:
    built = group({"t": 1}, member("b", "t", instance_id="i"), member("a", "t", instance_id="i"))

    assert built.member_ids == ("a", "b")


def test_member_id_that_is_there_twice_is_refused_by_name() -> None:
    with pytest.raises(InvalidGroupError, match="'m1' appears twice"):
        group({"t": 1}, member("m1", "t"), member("m2", "t"), member("m1", "t"))


def test_claims_that_cannot_be_true_are_ignored_and_counted() -> None:
    claims = {"t": [0, -1, 2, 2**31 - 1], "gone": [0, 1]}

    built = group({"t": 2}, member("m", "t", owned=claims))

    assert built.ownership.holder.tolist() == [0, -1]
    assert (built.ignored_claims.unknown_topic, built.ignored_claims.out_of_range) == (2, 3)


def test_ignored_claim_does_not_lend_its_generation_to_another() -> None:
    built = group(
        {"t": 1},
        member("a", "t", owned={"gone": [0], "t": [7]}, generation=5),
        member("b", "t", owned={"t": [0]}, generation=7),
        member("c", "t", owned={"t": [0]}, generation=6),
    )

    assert built.ownership.holder.tolist() == [1]
    assert built.ownership.generation.tolist() == [7]


def test_topic_without_metadata_does_not_make_subscriptions_unequal() -> None:
    built = group({"t": 1}, member("a", "t", "gone"), member("b", "t"))

    assert built.has_equal_subscriptions()


def test_topic_named_twice_counts_once() -> None:
    built = group({"t": 1, "u": 1}, member("a", "t", "t"), member("b", "u", "t"))

    assert built.subscriptions.of_topic(0).tolist() == [0, 1]
    assert built.subscriptions.of_topic(1).tolist() == [1]


def test_topics_with_the_same_readers_share_one_subscriber_set() -> None:
    built = group({"t": 1, "u": 1, "v": 1}, member("a", "t", "u"), member("b", "u", "t", "v"))

    assert built.subscriptions.n_sets == 2
    assert built.subscriptions.set_of_topic.tolist() == [0, 0, 1]


def test_unsubscribed_holder_is_not_the_owner() -> None:
    built = group({"t": 1, "u": 1}, member("a", "u", owned={"t": [0], "u": [0]}), member("b", "t"))

    assert built.ownership.holder.tolist() == [0, 0]
    assert built.owner.tolist() == [-1, 0]


def test_missing_capacity_is_the_median_of_the_known_ones() -> None:
    built = group(
        {"t": 1},
        member("a", "t", capacity=10.0),
        member("b", "t"),
        member("c", "t", capacity=20.0),
        member("d", "t", capacity=90.0),
    )

    assert built.capacity is not None
    assert built.capacity.tolist() == [10.0, 20.0, 20.0, 90.0]


def test_capacity_is_unknown_when_no_member_has_one() -> None:
    assert group({"t": 1}, member("a", "t")).capacity is None


def test_group_without_members_or_partitions_is_a_group() -> None:
    empty = build_group(topics=Topics.of({}), members=[])

    assert (empty.n_members, empty.n_partitions) == (0, 0)


def test_lag_that_cannot_be_summed_is_refused() -> None:
    with pytest.raises(InvalidGroupError, match="total lag"):
        group({"t": 2}, member("a", "t"), lags={"t": [2**62, 2**62]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lag": np.array([-1, 0])}, "lag of t000000-0 is negative"),
        ({"lag": np.zeros(3, np.int64)}, "2 partitions"),
        ({"rate": np.array([np.nan, 0.0])}, "rate"),
        ({"rate": np.array([-1.0, 0.0])}, "rate"),
        ({"rate": np.array([1e300, 0.0])}, "rate"),
        ({"capacity": np.array([0.0])}, "capacity"),
        ({"capacity": np.array([1e-300])}, "capacity"),
        ({"capacity": np.array([1e300])}, "capacity"),
        ({"capacity": np.array([np.inf])}, "capacity"),
        ({"capacity": np.array([1.0, 1.0])}, "capacity"),
        ({"member_ids": ("a", "b")}, "subscriptions"),
        (
            {"ownership": replace(equal_group(2, 1, 1).ownership, holder=np.array([1, 0], np.int32))},
            "holder",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_measures_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    sound = equal_group(2, 1, 1)

    with pytest.raises(InvalidGroupError, match=message):
        replace(sound, **change)
