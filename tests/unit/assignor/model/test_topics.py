import numpy as np
import pytest

from assignor.errors import InvalidGroupError
from assignor.model.java_order import java_order
from assignor.model.topics import Topics


def test_partitions_are_numbered_through_topics_in_name_order() -> None:
    topics = Topics.of({"b": 3, "a": 2})

    names = [topics.name(pid) for pid in range(topics.n_partitions)]

    assert names == ["a-0", "a-1", "b-0", "b-1", "b-2"]


def test_names_are_ordered_by_utf16_code_unit_as_in_java() -> None:
    supplementary, private_use = "\U0001f600", "\ue000"

    ordered = sorted([private_use, supplementary], key=java_order)

    assert ordered == [supplementary, private_use]
    assert sorted([private_use, supplementary]) == [private_use, supplementary]


def test_lone_surrogate_is_ordered_instead_of_raising() -> None:
    assert java_order("\ud800") < java_order("\ue000")


def test_pids_of_partitions_that_do_not_exist_are_minus_one() -> None:
    topics = Topics.of({"a": 2, "b": 3})
    wanted = [(0, 1), (1, 2), (0, 2), (1, -1), (-1, 0), (1, 2**31 - 1)]

    topic, number = np.array(wanted, np.int64).T
    pids = topics.partition_indices(topic, number)

    assert pids.tolist() == [1, 4, -1, -1, -1, -1]


@pytest.mark.parametrize("partitions", [3, 70_000], ids=["radix", "more than 16 bits of partitions"])
def test_spread_order_takes_every_topic_once_before_the_next_number(partitions: int) -> None:
    topics = Topics.of({"a": 2, "b": partitions})

    order = topics.spread_order(np.arange(topics.n_partitions))

    names = [topics.name(int(pid)) for pid in order[:5]]
    assert names == ["a-0", "b-0", "a-1", "b-1", "b-2"]
    assert (np.sort(order) == np.arange(topics.n_partitions)).all()


@pytest.mark.parametrize(
    ("names", "counts"),
    [(("b", "a"), [1, 1]), (("a", "a"), [1, 1]), (("a",), [-1]), (("a",), [1, 1])],
    ids=["not sorted", "twice", "negative count", "too many counts"],
)
def test_impossible_topics_are_refused(names: tuple[str, ...], counts: list[int]) -> None:
    with pytest.raises(InvalidGroupError):
        Topics(names=names, counts=np.array(counts, np.int64))


def test_topics_of_many_different_counts_are_left_to_a_sort() -> None:
    topics = Topics.of({f"t{count:03}": count for count in range(1, 100)})
    values = np.arange(topics.n_partitions, dtype=np.int32)

    assert topics.dealt(values, np.ones(topics.n_topics, np.bool_)) is None
