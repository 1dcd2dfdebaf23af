"""When what the tables remember is still true."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.kafka.positions import Position
from pipeline.run.memory import Memory, doubt, recall
from pipeline.tables.owner.ownership import Owner
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.support.batches import stamp_of
from tests.support.frames import NOW_MS

POSITIONS = {("t", 0): Position(7)}
STAMP = stamp_of(
    cluster_id="c1",
    filters="abc",
    positions=POSITIONS,
    versions={"consumer_groups": 4, "acks": 2, "orders": 0},
)


def doubted(stamp: Stamp = STAMP, **today: Any) -> str | None:
    return doubt(stamp, **{"cluster_id": "c1", "filters": "abc", "versions": STAMP.versions, **today})


def test_memory_of_the_same_cluster_and_filters_counts() -> None:
    assert doubted() is None


def test_tables_that_were_only_kept_up_since_are_no_older() -> None:
    assert doubted(versions={"consumer_groups": 9, "acks": 2, "orders": 1}) is None


@pytest.mark.parametrize(
    ("stamp", "today", "why"),
    [
        pytest.param(replace(STAMP, positions=None), {}, "an earlier version's", id="earlier version"),
        pytest.param(replace(STAMP, positions={}), {}, "read nothing yet", id="doubted at an earlier start"),
        pytest.param(STAMP, {"cluster_id": "c2"}, "from Kafka cluster c1, and this is c2", id="cluster"),
        pytest.param(STAMP, {"filters": "xyz"}, "source.groups_* have changed", id="filters"),
        pytest.param(
            STAMP,
            {"versions": {"consumer_groups": 3, "acks": 1, "orders": 0}},
            "table acks, consumer_groups is older than partition_lag",
            id="restored table",
        ),
    ],
)
def test_reason_why_everything_is_read_again_is_given(stamp: Stamp, today: dict[str, Any], why: str) -> None:
    assert why in (doubted(stamp, **today) or "")


class FakeStore:
    """Tables of which only stamps and versions are known."""

    def __init__(self, stamp: Stamp | None) -> None:
        self.stamps = {"partition_lag": stamp}

    def stamp(self, name: str) -> Stamp | None:
        return self.stamps.get(name)

    def versions(self, names: Any) -> dict[str, int]:
        return {name: STAMP.versions.get(name, 8) for name in names}

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
    store = FakeStore(replace(STAMP, tick=7, distrusted=(("t", 0, "log truncated"),)))
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


TWO_HOURS_AGO = stamp_of(at_ms=NOW_MS - 7_200_000)
OWNER = Owner("me", 1, "local", unseen_epochs=50)


@pytest.mark.parametrize(
    ("stamp", "last", "unseen"),
    [
        pytest.param(None, None, 0, id="new tables"),
        pytest.param(TWO_HOURS_AGO, None, 7200, id="old copy, or a driver that was down"),
        pytest.param(TWO_HOURS_AGO, OWNER, 7250, id="copy of restored tables"),
        pytest.param(stamp_of(at_ms=NOW_MS - 60_000), OWNER, 50, id="restart"),
        pytest.param(stamp_of(at_ms=NOW_MS + 7_200_000), OWNER, 50, id="clock of another host is ahead"),
    ],
)
def test_epochs_that_others_may_have_used_are_those_of_the_seconds_that_no_driver_of_these_tables_saw(
    stamp: Stamp | None, last: Owner | None, unseen: int
) -> None:
    assert recalled(FakeStore(stamp)).unseen_epochs(last, now_ms=NOW_MS) == unseen


@pytest.mark.parametrize(("recorded", "unseen"), [(TWO_HOURS_AGO, 7200), (None, 0)], ids=["copy", "lost"])
def test_history_of_plans_that_alone_is_an_old_copy_tells_its_own_age_and_lag_is_not_read_again(
    recorded: Stamp | None, unseen: int
) -> None:
    store = FakeStore(replace(STAMP, at_ms=NOW_MS, versions=STAMP.versions | {"recommendations": 9}))
    store.stamps["recommendations"] = recorded

    memory = recalled(store)

    assert memory.doubt is None
    assert memory.unseen_epochs(None, now_ms=NOW_MS) == unseen


def test_copy_of_the_history_of_plans_tells_its_age_also_where_the_lag_is_lost() -> None:
    store = FakeStore(None)
    store.stamps["recommendations"] = TWO_HOURS_AGO

    assert recalled(store).unseen_epochs(None, now_ms=NOW_MS) == 7200
