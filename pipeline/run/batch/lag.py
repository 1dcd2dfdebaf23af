"""The steps of lag: newest commits meet the log, and now and then go into the history."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Int64s
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag.settings import HistoryPace, LagSettings
from pipeline.run.batch.clock import due_after_ms
from pipeline.run.batch.confirmation import Confirmed
from pipeline.run.batch.in_tasks import Folding, rows_by, write_folded
from pipeline.run.batch.intake import Settled
from pipeline.run.tasks.tables import IS_DUE, READ_FOR_LAG, LagFold, history_rows
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

_BESIDE_LAGS = ("consumer_groups", "acks", "orders")
"""Latest tables that are folded from records, as `partition_lag` is."""
_MOST_GAP_TRIGGERS = 5
"""Some batches take longer than the trigger, and some answers are missing: that alone makes no figure uncertain."""
_MOST_GAP_LEAST_MS = 30_000
"""A trigger of a second or two is shorter than many batches."""


def store_lag(batch: Settled, confirmed: Confirmed, topics: tuple[str, ...]) -> Stamp:
    """The lag of every partition of every group, from what is stored by now; the stamp of that write comes out.

    Args:
        batch: Whose other tables that records change are written.
        confirmed: Its commits, and groups that do not count.
        topics: Whose log offsets are kept.
    """
    store, written = batch.services.store, batch.driver.written_ms
    # Where reading goes on stands in this commit: by then every table that the records change has been written.
    written |= {name: store.written_ms(name) for name in _BESIDE_LAGS if name not in written}
    stamp = replace(
        batch.stamp,
        written_ms={name: at_ms for name, at_ms in written.items() if at_ms is not None},
        remarks=(*batch.stamp.remarks, *confirmed.remarks),
        asked=confirmed.asked_at,
    )
    if "partition_lag" not in batch.held:
        fold = LagFold(
            cluster=batch.services.cluster,
            ghosts=confirmed.ghosts,
            reread=batch.reread(OFFSETS_TOPIC),
            beheaded=batch.beheaded(OFFSETS_TOPIC),
            settings=_settings(batch, topics),
            asked=confirmed.asked,
        )
        write_folded(
            replace(batch, stamp=stamp),
            Folding(name="partition_lag", key="group_id", reads=READ_FOR_LAG, fold=fold),
            confirmed.commits,
            _rows_by_group(store, confirmed.commits),
        )
    return stamp


def _rows_by_group(store: Store, commits: pa.Table) -> dict[str, int]:
    rows = rows_by("group_id", store.arrow("partition_lag", ["group_id"]), commits)
    groups = store.arrow("consumer_groups", ["group_id", "members"])
    for group, assigned in zip(groups["group_id"].to_pylist(), _assigned(groups), strict=True):
        rows[group] = max(rows.get(group, 0), int(assigned))
    return rows


def _assigned(groups: pa.Table) -> Int64s:
    """How many partitions the members of each group were given."""
    lists = groups["members"].combine_chunks()
    group = pc.list_parent_indices(lists).to_numpy()
    maps = pc.struct_field(pc.list_flatten(lists), "assigned")
    # Offsets of a column that begins where its buffers do.
    maps = maps.take(pa.array(np.arange(len(maps))))
    partitions = pc.fill_null(pc.list_value_length(maps.items), 0).to_numpy()
    of_member = np.repeat(np.arange(len(maps)), np.diff(maps.offsets.to_numpy()))
    counted = np.bincount(group[of_member], weights=partitions, minlength=groups.num_rows)
    return counted.astype(np.int64)


def _settings(batch: Settled, topics: tuple[str, ...]) -> LagSettings:
    config, every_s = batch.services.config, batch.services.config.trigger.interval_s
    if batch.services.is_once:
        # From one run to the next.
        every_s = max(every_s, config.plan.interval_s)
    return LagSettings(
        at_ms=batch.stamp.at_ms,
        batch_id=batch.stamp.batch_id,
        behind=batch.stamp.behind,
        half_life_ms=config.rates.half_life_s * 1000,
        most_gap_ms=max(_MOST_GAP_TRIGGERS * every_s * 1000, _MOST_GAP_LEAST_MS),
        allowed_lag=config.status.allowed_lag,
        history=HistoryPace(
            interval_ms=due_after_ms(config.history.interval_s, batch_interval_s=config.trigger.interval_s),
            max_gap_ms=due_after_ms(config.history.max_gap_s, batch_interval_s=config.trigger.interval_s),
        ),
        retention_ms=batch.services.retention(topics),
    )


def store_history(batch: Settled) -> None:
    """Store the due rows of `partition_lag` in the history; start no job if there are none."""
    if "lag_history" in batch.held:
        return
    due = batch.services.store.arrow("partition_lag", ["group_id"], where=IS_DUE)
    if due.num_rows:
        # The batch brings nothing to it: all comes from what is stored.
        write_folded(
            batch,
            Folding(name="lag_history", key="group_id", reads=("partition_lag",), fold=history_rows),
            due.slice(0, 0),
            rows_by("group_id", due),
        )
