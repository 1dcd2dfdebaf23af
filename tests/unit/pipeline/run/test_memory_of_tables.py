"""A table that is older than `partition_lag` is noticed, whatever has been committed to it since."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.kafka.positions import Position
from pipeline.run.memory import recall
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS, arrow, at

POSITIONS = {("lagwise.commands", 0): Position(6)}


def batch(store: Store, number: int, *paused: str) -> None:
    """Write orders, if there are any, and the lag with them."""
    stamp = Stamp(
        batch_id=number, at_ms=NOW_MS + 1000 * number, cluster_id="k", filters="f", positions=POSITIONS
    )
    if paused:
        rows = [
            {"group_id": group, "paused": True, "position": number, "updated_at": at(number)}
            for group in paused
        ]
        store.write("orders", arrow("orders", *rows), stamp)
    written_ms = store.written_ms("orders")
    known = {} if written_ms is None else {"orders": written_ms}
    store.write(
        "partition_lag",
        arrow("partition_lag"),
        Stamp(
            batch_id=number,
            at_ms=stamp.at_ms,
            cluster_id="k",
            filters="f",
            positions=POSITIONS,
            written_ms=known,
        ),
    )


def _restore(orders: Path, copy: Path) -> None:
    shutil.rmtree(orders)
    shutil.copytree(copy, orders)


def _empty_the_newest_entry(orders: Path, _copy: Path) -> None:
    newest = max((orders / "_delta_log").glob("*.json"))
    newest.write_bytes(b"")


def _nothing(_orders: Path, _copy: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("happens", "is_doubted"), [(_restore, True), (_empty_the_newest_entry, True), (_nothing, False)]
)
def test_orders_that_were_restored_or_lost_a_write_are_read_again(
    tmp_path: Path, happens: Callable[[Path, Path], None], is_doubted: bool
) -> None:
    root, copy = tmp_path / "tables", tmp_path / "copy"
    create_tables(str(root), retention_hours=2, storage_options={})
    store = Store(str(root), term=1)
    store.touch()
    batch(store, 1, "other")
    shutil.copytree(root / "orders", copy)
    batch(store, 2, "other", "billing")
    for number in range(3, 6):
        batch(store, number)

    happens(root / "orders", copy)
    started = Store(str(root), term=2)
    started.touch()

    doubt = recall(started, cluster_id="k", filters="f").doubt
    assert ("table orders is older than partition_lag" in (doubt or "")) is is_doubted
    assert is_doubted or doubt is None


def test_orders_of_a_batch_that_died_are_no_older(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=2, storage_options={})
    store = Store(str(tmp_path), term=1)
    batch(store, 1, "billing")
    store.write("orders", arrow("orders"), Stamp(batch_id=2, at_ms=NOW_MS + 2000))

    assert recall(store, cluster_id="k", filters="f").doubt is None
