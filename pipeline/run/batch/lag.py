"""The steps of lag: newest commits meet the log, and now and then go into the history."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pipeline.fold import on_driver, owners
from pipeline.fold.control_messages import handed_over, held_partitions
from pipeline.fold.step import assigned_partitions, fold_commits, newest_commits
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag.history_turn import HistoryPace
from pipeline.lag.lags import LagSettings
from pipeline.lag.step import lag_of, measure_lag
from pipeline.run.batch.writes import less_ghosts, less_ghosts_here, write, write_measured
from pipeline.run.driver import Batch
from pipeline.tables.store import Store

_BESIDE_LAGS = ("consumer_groups", "acks", "orders")
"""Latest tables that are folded from records, as `partition_lag` is."""


def store_lag(batch: Batch) -> None:
    """The lag of every partition of every group, from what is stored by now."""
    if "partition_lag" in batch.written:
        return
    store, tables = batch.services.store, batch.driver.tables
    # Where reading goes on stands in this commit: by then every table that the records change has been written.
    tables.versions |= store.versions(name for name in _BESIDE_LAGS if name not in tables.versions)
    batch.stamp = replace(batch.clock, versions=dict(tables.versions))
    if batch.here is not None:
        write_measured(batch, "partition_lag", _lag_here(batch))
    else:
        write(batch, "partition_lag", _lag(batch))


def _lag(batch: Batch) -> DataFrame:
    store = batch.services.store
    groups = store.read("consumer_groups")
    held = assigned_partitions(groups)
    moved = _handed_over(store)
    if moved.num_rows:
        held = held_partitions(held, store.spark.createDataFrame(moved), groups)
    folded = fold_commits(
        less_ghosts(batch, store.read("partition_lag")),
        newest_commits(batch.kind("commit", "tombstone")),
        held,
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
    )
    return measure_lag(folded, store.read("topic_offsets"), _settings(batch))


def _lag_here(batch: Batch) -> pa.Table:
    """As `_lag`, on the driver."""
    store = batch.services.store
    groups = store.arrow("consumer_groups")
    folded = on_driver.fold_commits(
        less_ghosts_here(batch, store.arrow("partition_lag")),
        on_driver.newest_commits(batch.arrow("commit", "tombstone")),
        owners.held_partitions(groups, handed_over(store.arrow("acks"), groups)),
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
    )
    return lag_of(folded, store.arrow("topic_offsets"), _settings(batch))


def _handed_over(store: Store) -> pa.Table:
    acks = store.arrow("acks")
    # Of large tables only the groups of which somebody said anything.
    those = pc.field("group_id").isin(acks["group_id"].unique())
    return handed_over(acks, store.arrow("consumer_groups", where=those))


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
