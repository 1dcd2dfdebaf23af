"""Rows of the newest versions of the tables, from which the page and metrics compute figures of groups."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import Config, MetricsConfig
from pipeline.name_filter import NameFilter
from pipeline.operate.old_log_ends import limit_of, with_is_old
from pipeline.operate.serve.snapshot import Snapshot

COLUMNS = {
    "partition_lag": (
        *("cluster", "group_id", "topic", "partition", "committed_offset", "lag", "lag_at_commit"),
        *("lag_seconds", "lag_seconds_is_lower_bound", "retention_seconds", "arrival_rate", "drain_rate"),
        *("trend", "status", "provisional", "member_id", "client_id", "client_host"),
        *("log_observed_at", "updated_at"),
    ),
    "topic_offsets": (
        *("cluster", "topic", "partition", "log_start_offset", "log_end_offset", "deleted_at"),
        *("leader_broker", "preferred_leader", "replicas", "in_sync_replicas"),
    ),
    "consumer_groups": (
        *("cluster", "group_id", "group_type", "state", "generation", "members"),
        "reconciliation",
    ),
    "plan_state": (
        *("cluster", "group_id", "decision", "reason", "assignment", "moves"),
        *("plan_effect", "plan_effect_why", "probation_until"),
        *("drain_s_before", "drain_s_after", "drain_s_bound", "capacity_known", "plan", "state"),
    ),
    "acks": ("group_id", "kind", "epoch", "member_id"),
    "orders": ("group_id", "paused"),
    "member_rates": ("group_id", "identity", "shown_rate"),
    "planner_state": ("cluster", "term"),
}
"""Columns that are read, by table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """Rows of the tables, under the tables' names. Columns are those of `COLUMNS`; lag rows also have `is_old`."""

    partition_lag: pa.Table
    topic_offsets: pa.Table
    consumer_groups: pa.Table
    plan_state: pa.Table
    acks: pa.Table
    orders: pa.Table
    member_rates: pa.Table
    planner_state: pa.Table
    as_of: datetime | None
    """Clock of the newest batch; None before the first."""


def facts(found: Snapshot, config: Config) -> Facts:
    """The rows of all groups and topics.

    Raises:
        StoreError: A table cannot be read.
    """
    rows = {name: found.read(name, columns=columns) for name, columns in COLUMNS.items()}
    rows["partition_lag"] = with_is_old(rows["partition_lag"], limit_of(config))
    return Facts(**rows, as_of=found.observed_at)


def narrowed(whole: Facts, config: MetricsConfig) -> Facts:
    """The rows of the groups and topics that the metrics configuration includes."""
    groups = NameFilter(config.groups_include, config.groups_exclude)
    topics = NameFilter(config.topics_include, config.topics_exclude)
    rows = {name: _wanted(getattr(whole, name), "group_id", groups) for name in COLUMNS}
    rows = {name: _wanted(one, "topic", topics) for name, one in rows.items()}
    # A decision outlives its group by weeks.
    rows["plan_state"] = _of_groups(rows["plan_state"], rows["partition_lag"], rows["consumer_groups"])
    return Facts(**rows, as_of=whole.as_of)


def _of_groups(rows: pa.Table, *known: pa.Table) -> pa.Table:
    """The rows of groups that some other table knows."""
    names = pa.concat_arrays([one["group_id"].combine_chunks() for one in known])
    return rows.filter(pc.is_in(rows["group_id"], value_set=names))


def _wanted(rows: pa.Table, column: str, names: NameFilter) -> pa.Table:
    if column not in rows.column_names:
        return rows
    # A name is matched once, however many rows have it.
    known = rows[column].unique()
    wanted = pa.array([name for name in known.to_pylist() if names.admits(name)], known.type)
    return rows if len(wanted) == len(known) else rows.filter(pc.is_in(rows[column], value_set=wanted))
