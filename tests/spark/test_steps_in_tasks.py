"""Batches that are folded by one task, by many, and in turns leave the same tables."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline import task_sizes
from pipeline.run.batch.control_messages import store_control_messages
from pipeline.run.batch.groups import store_group_history, store_groups
from pipeline.run.batch.lag import store_history, store_lag
from pipeline.run.batch.quarantine import store_quarantine
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.run.driver import Driver
from pipeline.source.summary import Summary
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, at, decoded_rows, member
from tests.support.job.steps import run_steps

STEPS = (
    store_topic_offsets,
    store_group_history,
    store_groups,
    store_control_messages,
    store_quarantine,
    store_lag,
    store_history,
)
"""From the first write to the last that is not about plans."""
TABLES = (
    "topic_offsets",
    "consumer_groups",
    "group_history",
    "acks",
    "partition_lag",
    "lag_history",
    "quarantine",
)
COUNTED = {"commit", "tombstone", "bad", "group", "ack"}
Row = dict[str, Any]


def log(partition: int, end: int, batch: int, **fields: Any) -> Row:
    return fields | {
        "row_kind": "log_offset",
        "partition": partition,
        "topic_id": "A",
        "log_start_offset": 0,
        "log_end_offset": end,
        "observed_at_ms": NOW_MS + batch * 30_000,
    }


def commit(partition: int, position: int, offset: int, **fields: Any) -> Row:
    kind = {"row_kind": "commit", "partition": partition, "position": position}
    return kind | {"committed_offset": offset, "commit_timestamp_ms": NOW_MS} | fields


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
    [
        *(log(0, 100, 0), log(1, 50, 0), log(0, 70, 0, topic="u")),
        *(commit(0, 1, 10), commit(0, 1, 20, topic="u"), commit(1, 4, 30, group_id="h")),
        *(group(2, 4), group(3, 5), group(5, 1) | {"group_id": "k"}, BAD),
    ],
    [
        log(0, 130, 1),
        log(1, 50, 1),
        log(0, 90, 1, topic="u"),
        commit(1, 5, 20),
        {**commit(0, 6, 0), "row_kind": "tombstone"},
    ],
    [log(0, 140, 2), log(1, 50, 2), commit(0, 9, 130), release(1), BAD],
)


def tables_after(
    spark: SparkSession, root: str, ways: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """The rows of every table, each batch folded by at least so many tasks, as far as it has keys."""
    create_tables(root, retention_hours=1, storage_options={})
    store = Store(root, term=1)
    driver = idle_driver(store=store, spark=spark)
    for number, (events, way) in enumerate(zip(BATCHES, ways, strict=True)):
        monkeypatch.setattr(Driver, "parallelism", int(way))
        monkeypatch.setattr(task_sizes, "_LEAST_ROWS", 1)
        kinds = [event["row_kind"] for event in events if event["row_kind"] in COUNTED]
        batch = batch_of(
            driver,
            stamp=stamp_of(batch_id=number, at_ms=NOW_MS + number * 30_000, positions={}),
            decoded=decoded_rows(*events),
            summary=Summary(counts={kind: kinds.count(kind) for kind in kinds}),
        )
        run_steps(batch, *STEPS)
    return {
        name: sorted(repr(sorted(row.items())) for row in store.arrow(name).to_pylist()) for name in TABLES
    }


@pytest.mark.parametrize("ways", ["222", "555", "152"])
def test_tables_are_the_same_however_many_tasks_fold_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: str
) -> None:
    here = tables_after(spark, str(tmp_path / "here"), "111", monkeypatch)

    assert tables_after(spark, str(tmp_path / "there"), ways, monkeypatch) == here
    assert {name: len(rows) for name, rows in here.items()} == {
        "topic_offsets": 3,
        "consumer_groups": 2,
        "group_history": 2,
        "acks": 1,
        "partition_lag": 6,
        "lag_history": 10,
        "quarantine": 1,
    }
