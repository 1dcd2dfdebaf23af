"""Samples of groups: sums and largest figures, partitions by status and doubt, members, and how they compare."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import MetricsConfig
from pipeline.operate.listings.totals import may_have_unread
from pipeline.operate.old_log_ends import IS_OLD, are_ages_open
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.partitions import member_columns
from pipeline.operate.serve.metrics.text import Labels, Samples, labels_of, samples
from pipeline.operate.serve.views.crew import Members, members_of
from pipeline.operate.serve.views.facts import Facts

GROUP = ["cluster", "group_id"]


def group_labels(rows: pa.Table, **more: str) -> Labels:
    """`cluster_name` and `group`, and further labels by column."""
    return labels_of(rows, cluster_name="cluster", group="group_id", **more)


def group_samples(facts: Facts, config: MetricsConfig) -> Iterator[Samples]:
    """Samples of each group as a whole, and of its members."""
    lag = facts.partition_lag
    sums = lag.group_by(GROUP).aggregate(
        [
            ("lag", "sum"),
            ("lag", "max"),
            ("lag_at_commit", "sum"),
            ("lag_seconds", "max"),
            ("arrival_rate", "sum"),
            ("drain_rate", "sum"),
            ("retention_seconds", "min"),
        ]
    )
    labels = group_labels(sums)
    if "seglo" in config.families:
        yield samples(families.SEGLO_SUM_LAG, labels, sums["lag_sum"])
        yield samples(families.SEGLO_MAX_LAG, labels, sums["lag_max"])
        yield samples(families.SEGLO_MAX_LAG_SECONDS, labels, sums["lag_seconds_max"])
    yield samples(families.GROUP_LAG_AT_COMMIT, labels, sums["lag_at_commit_sum"])
    yield samples(families.GROUP_ARRIVAL, labels, sums["arrival_rate_sum"])
    yield samples(families.GROUP_DRAIN, labels, sums["drain_rate_sum"])
    yield samples(families.GROUP_RETENTION, labels, sums["retention_seconds_min"])
    yield from _partition_counts(lag)
    members = members_of(facts)
    yield from _member_counts(facts, members, config)
    yield from _by_member(lag, config)


def _partition_counts(lag: pa.Table) -> Iterator[Samples]:
    by_status = lag.group_by([*GROUP, "status"]).aggregate([("partition", "count")])
    yield samples(
        families.GROUP_PARTITIONS, group_labels(by_status, status="status"), by_status["partition_count"]
    )
    doubts = {
        "lag_unknown": lag["lag"].is_null(),
        "lag_at_commit_unknown": lag["lag_at_commit"].is_null(),
        "lag_seconds_unknown": lag["lag_seconds"].is_null(),
        "lag_seconds_lower_bound": pc.or_(lag["lag_seconds_is_lower_bound"], are_ages_open(lag)),
        "log_end_old": lag[IS_OLD],
        "provisional": lag["provisional"],
        "retention_unknown": pc.and_(lag["retention_seconds"].is_null(), may_have_unread(lag)),
        "rate_unknown": pc.or_(lag["arrival_rate"].is_null(), lag["drain_rate"].is_null()),
    }
    counted = pa.concat_tables(_counts(lag, why, holds) for why, holds in doubts.items())
    yield samples(families.GROUP_DOUBTFUL, group_labels(counted, why="why"), counted["count"])
    provisional = counted.filter(pc.equal(counted["why"], "provisional"))
    is_provisional = pc.cast(pc.greater(provisional["count"], 0), pa.int64())
    yield samples(families.GROUP_PROVISIONAL, group_labels(provisional), is_provisional)


def _counts(lag: pa.Table, why: str, holds: pa.ChunkedArray) -> pa.Table:
    """One row per group: the number of its partitions for which it holds; null counts as no."""
    holding = pc.cast(pc.fill_null(holds, fill_value=False), pa.int64())
    counted = lag.select(GROUP).append_column("holds", holding).group_by(GROUP).aggregate([("holds", "sum")])
    named = counted.append_column("why", pa.repeat(pa.scalar(why), counted.num_rows))
    return named.rename_columns({"holds_sum": "count"})


def _member_counts(facts: Facts, members: Members, config: MetricsConfig) -> Iterator[Samples]:
    groups = facts.consumer_groups
    labels = group_labels(groups)
    names = groups["group_id"].to_pylist()
    counts = pa.array([members.count(name) for name in names], pa.int64())
    if "kafka_exporter" in config.families:
        yield samples(families.EXPORTER_MEMBERS, labels_of(groups, consumergroup="group_id"), counts)
    yield samples(families.GROUP_MEMBERS, labels, counts)
    idle = pa.array([members.idle(name) for name in names], pa.int64())
    yield samples(families.GROUP_MEMBERS_IDLE, labels, idle)
    stuck = pa.array([members.stuck.get(name) for name in names], pa.int64())
    yield samples(families.GROUP_MEMBERS_STUCK, labels, stuck)
    yield samples(families.GROUP_GENERATION, labels, groups["generation"])
    capacity = pa.array([members.capacity_ratio(name) for name in names], pa.float64())
    yield samples(families.GROUP_CAPACITY, labels, capacity)
    skew = pa.array([members.lag_skew(name) for name in names], pa.float64())
    yield samples(families.GROUP_SKEW, labels, skew)


def _by_member(lag: pa.Table, config: MetricsConfig) -> Iterator[Samples]:
    """Sums over members with the same labels."""
    columns: Mapping[str, str] = member_columns(config)
    owned = lag.filter(lag["member_id"].is_valid())
    sums = owned.group_by([*GROUP, *columns.values()]).aggregate([("lag", "sum"), ("drain_rate", "sum")])
    labels = group_labels(sums, **columns)
    yield samples(families.MEMBER_LAG, labels, sums["lag_sum"])
    yield samples(families.MEMBER_DRAIN, labels, sums["drain_rate_sum"])
