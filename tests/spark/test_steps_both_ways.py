"""Batches that go through the steps by Spark, on the driver, and in turns leave the same tables."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.decode.step import Summary
from pipeline.run.batch import steps
from pipeline.run.batch.lag import store_history
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.tables.creation import create_tables
from pipeline.tables.store import Store
from tests.support.batches import batch_of, idle_driver, stamp_of
from tests.support.frames import NOW_MS, at, decoded, decoded_arrow, member

# From the first write to the last that is not about plans.
STEPS = steps.STEPS[steps.STEPS.index(store_topic_offsets) : steps.STEPS.index(store_history) + 1]
TABLES = ("topic_offsets", "consumer_groups", "acks", "partition_lag", "lag_history", "quarantine")
COUNTED = {"commit", "tombstone", "bad", "group", "ack"}
Row = dict[str, Any]


def log(partition: int, end: int, batch: int) -> Row:
    return {
        "row_kind": "log_offset",
        "partition": partition,
        "topic_id": "A",
        "log_start_offset": 0,
        "log_end_offset": end,
        "observed_at_ms": NOW_MS + batch * 30_000,
    }


def commit(partition: int, position: int, offset: int) -> Row:
    kind = {"row_kind": "commit", "partition": partition, "position": position}
    return kind | {"committed_offset": offset, "commit_timestamp_ms": NOW_MS}


def group(position: int, generation: int) -> Row:
    members = [member("a", assigned={"t": [0, 1]}), member("b", assigned={"t": [1]})]
    fields = {"state": "Stable", "protocol_type": "consumer", "generation": generation, "members": members}
    return {"row_kind": "group", "group_type": "classic", "position": position, **fields}


def release(position: int) -> Row:
    fields = {"kind": "release", "id": "t-0", "generation": 5, "epoch": 1, "member_id": "a", "topic": "t"}
    more = {"partition": 0, "hop": 1, "acked_at": at(0)}
    return {"row_kind": "ack", "position": position, "ack": fields | more}


BAD = {"row_kind": "bad", "topic": "x", "offset": 1, "timestamp": at(0), "kind": "k", "reason": "why"}
BATCHES: tuple[list[Row], ...] = (
    [log(0, 100, 0), log(1, 50, 0), commit(0, 1, 10), group(2, 4), group(3, 5), BAD],
    [log(0, 130, 1), log(1, 50, 1), commit(1, 5, 20), {**commit(0, 6, 0), "row_kind": "tombstone"}],
    [log(0, 140, 2), commit(0, 9, 130), release(1), BAD],
)


def tables_after(spark: SparkSession, root: str, ways: str) -> dict[str, list[str]]:
    """The rows of every table, each batch folded in its way: s by Spark, d on the driver."""
    create_tables(root, retention_hours=1, storage_options={})
    store = Store(spark, root, term=1)
    driver = idle_driver(store=store)
    for number, (events, way) in enumerate(zip(BATCHES, ways, strict=True)):
        kinds = [event["row_kind"] for event in events if event["row_kind"] in COUNTED]
        batch = batch_of(
            driver,
            batch_id=number,
            stamp=stamp_of(batch_id=number, at_ms=NOW_MS + number * 30_000, positions={}),
            here=decoded_arrow(*events) if way == "d" else None,
            decoded=decoded(spark, *events) if way == "s" else None,
            summary=Summary(counts={kind: kinds.count(kind) for kind in kinds}),
        )
        steps.run(batch, STEPS)
    return {
        name: sorted(repr(sorted(row.items())) for row in store.arrow(name).to_pylist()) for name in TABLES
    }


@pytest.mark.parametrize("ways", ["sss", "dsd", "sds"])
def test_tables_are_the_same_whichever_way_batches_went(
    spark: SparkSession, tmp_path: Path, ways: str
) -> None:
    here = tables_after(spark, str(tmp_path / "here"), "ddd")

    assert tables_after(spark, str(tmp_path / "there"), ways) == here
    assert {name: len(rows) for name, rows in here.items()} == {
        "topic_offsets": 2,
        "consumer_groups": 1,
        "acks": 1,
        "partition_lag": 2,
        "lag_history": 4,
        "quarantine": 1,
    }
