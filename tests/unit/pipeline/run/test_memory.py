"""When what the tables remember is still true."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.kafka.positions import Position
from pipeline.run.memory import Memory, doubt, recall
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.support.job.batches import stamp_of

POSITIONS = {("t", 0): Position(7)}
STAMP = stamp_of(
    cluster_id="c1",
    filters="abc",
    positions=POSITIONS,
    written_ms={"consumer_groups": 4, "acks": 2},
)


def doubted(stamp: Stamp = STAMP, **today: Any) -> str | None:
    return doubt(stamp, **{"cluster_id": "c1", "filters": "abc", "written_ms": STAMP.written_ms, **today})


def test_memory_of_the_same_cluster_and_filters_counts() -> None:
    assert doubted() is None


def test_table_that_a_batch_has_written_which_did_not_end_is_no_older() -> None:
    assert doubted(written_ms={"consumer_groups": 9, "acks": 2}) is None


@pytest.mark.parametrize(
    ("stamp", "today", "why"),
    [
        pytest.param(replace(STAMP, positions=None), {}, "an earlier version's", id="earlier version"),
        pytest.param(replace(STAMP, positions={}), {}, "read nothing yet", id="doubted at an earlier start"),
        pytest.param(STAMP, {"cluster_id": "c2"}, "from Kafka cluster c1, and this is c2", id="cluster"),
        pytest.param(STAMP, {"filters": "xyz"}, "source.groups_* have changed", id="filters"),
        pytest.param(
            STAMP,
            {"written_ms": {"consumer_groups": 3, "acks": 1}},
            "table acks, consumer_groups is older than partition_lag",
            id="restored table",
        ),
    ],
)
def test_reason_why_everything_is_read_again_is_given(stamp: Stamp, today: dict[str, Any], why: str) -> None:
    assert why in (doubted(stamp, **today) or "")


class FakeStore:
    """Tables of which only stamps and times are known."""

    def __init__(self, stamp: Stamp | None) -> None:
        self.stamps = {"partition_lag": stamp}

    def stamp(self, name: str) -> Stamp | None:
        return self.stamps.get(name)

    def written_ms(self, name: str) -> int | None:
        return STAMP.written_ms.get(name)

    def restamp(self, name: str, stamp: Stamp) -> None:
        self.stamps[name] = stamp


def recalled(store: Any, *, cluster_id: str = "c1") -> Memory:
    return recall(store, cluster_id=cluster_id, filters="abc")


def kept(memory: Memory, store: Any) -> Stamp | None:
    tables: Store = store
    return memory.keep(tables)


def test_reading_goes_on_where_the_last_batch_ended() -> None:
    store = FakeStore(STAMP)

    memory = recalled(store)
    newest = kept(memory, store)

    assert (newest, memory.is_new_cluster) == (STAMP, False)
    assert store.stamps["partition_lag"] == STAMP


def test_new_tables_remember_nothing_and_nothing_is_doubted() -> None:
    store = FakeStore(None)

    memory = recalled(store)
    newest = kept(memory, store)

    assert (newest, memory.doubt, memory.is_new_cluster) == (None, None, False)
    assert store.stamps["partition_lag"] is None


def test_doubt_outlives_a_driver_that_dies_before_its_first_batch() -> None:
    store = FakeStore(replace(STAMP, tick=7, distrusted=(("t", 0, "log truncated"),), asked={"g": (5, 5)}))
    first = recalled(store, cluster_id="c2")
    newest = kept(first, store)

    # Back on the first cluster: the tables may hold rows of neither by now.
    second = recalled(store)

    # No batch that was begun before is gone on with.
    assert newest == store.stamps["partition_lag"] == replace(STAMP, positions={}, tick=0)
    assert first.is_new_cluster
    assert second.doubt is not None
    assert "read nothing yet" in (second.doubt or "")


def test_tables_of_an_earlier_version_are_not_taken_for_another_clusters() -> None:
    memory = recalled(FakeStore(stamp_of()))

    assert not memory.is_new_cluster
    assert "earlier version's" in (memory.doubt or "")
