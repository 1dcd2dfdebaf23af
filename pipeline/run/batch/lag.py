"""The steps of lag: newest commits meet the log, and now and then go into the history."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.control_messages import held_partitions
from pipeline.fold.step import assigned_partitions, fold_commits, newest_commits
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag.step import LagSettings, measure_lag
from pipeline.run.batch.writes import handed_over, less_ghosts, write
from pipeline.run.driver import Batch

_BESIDE_LAGS = ("consumer_groups", "acks", "orders")
"""Latest tables that are folded from records, as `partition_lag` is."""


def store_lag(batch: Batch) -> None:
    """The lag of every partition of every group, from what is stored by now."""
    if "partition_lag" in batch.written:
        return
    config, store, tables = batch.services.config, batch.services.store, batch.driver.tables
    groups = store.read("consumer_groups")
    held = assigned_partitions(groups)
    if tables.has_acks:
        held = held_partitions(held, handed_over(store), groups)
    folded = fold_commits(
        less_ghosts(batch, store.read("partition_lag")),
        newest_commits(batch.kind("commit", "tombstone")),
        held,
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
    )
    measured = measure_lag(
        folded,
        store.read("topic_offsets"),
        LagSettings(
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            behind=batch.clock.behind,
            half_life_ms=config.rates.half_life_s * 1000,
            allowed_lag=config.status.allowed_lag,
            history_interval_ms=config.history.interval_s * 1000,
            history_max_gap_ms=config.history.max_gap_s * 1000,
        ),
    )
    # Where reading goes on stands in this commit: by then every table that the records change has been written.
    tables.versions |= store.versions(name for name in _BESIDE_LAGS if name not in tables.versions)
    batch.stamp = replace(batch.clock, versions=dict(tables.versions))
    write(batch, "partition_lag", measured)


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
