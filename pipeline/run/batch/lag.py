"""The steps of lag: newest commits meet the log, and now and then go into the history."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.owners import assigned_partitions
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag.history_turn import HistoryPace
from pipeline.lag.lags import LagSettings
from pipeline.run.batch.in_tasks import Folding, rows_by, write_folded
from pipeline.run.batch.writes import ghosts_of
from pipeline.run.driver import Batch
from pipeline.run.tasks.tables import LagFold
from pipeline.tables.store import Store

_BESIDE_LAGS = ("consumer_groups", "acks", "orders", "recommendations")
"""Latest tables that are folded from records, as `partition_lag` is, and the one that has all epochs."""


def store_lag(batch: Batch) -> None:
    """The lag of every partition of every group, from what is stored by now."""
    if "partition_lag" in batch.written:
        return
    store, tables = batch.services.store, batch.driver.tables
    # Where reading goes on stands in this commit: by then every table that the records change has been written.
    tables.versions |= store.versions(name for name in _BESIDE_LAGS if name not in tables.versions)
    batch.stamp = replace(batch.clock, versions=dict(tables.versions))
    fold = LagFold(
        cluster=batch.services.cluster,
        ghosts=ghosts_of(batch),
        reread=batch.reread(OFFSETS_TOPIC),
        beheaded=batch.beheaded(OFFSETS_TOPIC),
        settings=_settings(batch),
    )
    commits = batch.decoded.kind("commit", "tombstone")
    if batch.answered is not None:
        commits = pa.concat_tables([commits, batch.answered])
    write_folded(
        batch,
        Folding(name="partition_lag", key="group_id", fold=fold),
        commits,
        _rows_by_group(store, commits),
    )


def _rows_by_group(store: Store, commits: pa.Table) -> dict[str, int]:
    rows = rows_by("group_id", store.arrow("partition_lag", ["group_id"]), commits)
    groups = store.arrow("consumer_groups", ["group_id", "members"])
    for group, assigned in zip(groups["group_id"].to_pylist(), assigned_partitions(groups), strict=True):
        rows[group] = max(rows.get(group, 0), int(assigned))
    return rows


def _settings(batch: Batch) -> LagSettings:
    config = batch.services.config
    return LagSettings(
        at_ms=batch.clock.at_ms,
        batch_id=batch.batch_id,
        behind=batch.clock.behind,
        half_life_ms=config.rates.half_life_s * 1000,
        allowed_lag=config.status.allowed_lag,
        history=HistoryPace(
            interval_ms=config.history.interval_s * 1000, max_gap_ms=config.history.max_gap_s * 1000
        ),
        retention_ms=batch.services.retention(batch.driver.tables.topics),
    )


def store_history(batch: Batch) -> None:
    """The rows of `partition_lag` whose turn it is."""
    if "lag_history" in batch.written:
        return
    batch.services.store.copy(
        "partition_lag",
        "lag_history",
        batch.clock,
        where=pc.field("history_at") == pc.field("updated_at"),
        computed={"date": pc.field("updated_at").cast(pa.date32())},
    )
    batch.written.add("lag_history")
