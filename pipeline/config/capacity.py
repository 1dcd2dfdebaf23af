"""Capacity of a configuration, computed from figures measured on two cores (`deploy/docs/performance.md`).

Figures are interpolated between the measured sizes and extrapolated beyond them, both on logarithmic scales; a machine
with more cores has more capacity.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.config.model import Config


@dataclass(frozen=True, slots=True)
class _Size:
    """A measured size."""

    rows: int
    batch_s: float
    """Median time of a batch, with decisions, history and publishing."""
    plain_batch_s: float
    """Median time of a batch without them."""
    memory_gb: float
    """Peak of JVM, Python and workers together; shared memory counts once (PSS)."""


MEASURED = (
    _Size(10_000, 0.85, 0.57, 1.7),
    _Size(100_000, 1.7, 0.94, 2.6),
    _Size(1_000_000, 15.8, 5.5, 4.8),
)
_DECODED_PER_S = 610_000
"""Commits, from the broker, of 100,000 keys."""
_LOGS_PER_S = 100_000 / 5.4
"""Partitions whose log offsets were answered, in the slowest trigger of the largest measurement."""
_LAG_BYTES, _LOG_BYTES, _HISTORY_BYTES = 64, 43, 24
"""Size of a row of `partition_lag`, `topic_offsets` and `lag_history`."""
_BUSY_SHARE = 0.3
"""Share of the groups in which the lag of a partition changed within each minute."""
_DEFAULT_HEAP = "2g"
_HEAP_GB, _ROWS_ON_IT, _FEW_ROWS = 2, 1_000_000, 100_000
"""The largest number of rows measured, and its heap. Smaller heaps were measured with few rows only."""
_DAY_S, _HOUR_S, _GB = 86_400, 3_600, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Size of a cluster."""

    partitions: int
    """Rows of `partition_lag`: partitions counted once for each group that reads them."""
    logs: int
    """Partitions of topics."""
    commits_per_s: float = 0.0
    """Commits/s of all groups together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Load that a configuration can take from such a cluster, and its costs."""

    batch_s: float
    plain_batch_s: float
    commits_per_s: float
    log_offsets_s: float
    """Time until all log offsets are answered."""
    memory_gb: float
    latest_gb: float
    """Size of the latest tables, with the versions kept for readers."""
    history_gb_a_day: float


def capacity(config: Config, cluster: Cluster) -> Capacity:
    """The capacity for such a cluster, sufficient or not."""
    rows = cluster.partitions
    batch_s, plain_s = (_at(rows, name) for name in ("batch_s", "plain_batch_s"))
    most = config.source.max_offsets_per_trigger
    # Decisions and history come once per interval, in addition to reading.
    for_reading = max(0.0, 1 - (batch_s - plain_s) / min(config.plan.interval_s, config.history.interval_s))
    batches_held = (
        config.tables.retention_hours * _HOUR_S / config.trigger.interval_s
        + config.tables.upkeep_every_batches
    )
    history = config.history
    a_day = _DAY_S * (_BUSY_SHARE / history.interval_s + (1 - _BUSY_SHARE) / history.max_gap_s)
    return Capacity(
        batch_s=batch_s,
        plain_batch_s=plain_s,
        commits_per_s=for_reading * most / (plain_s + most / _DECODED_PER_S),
        log_offsets_s=cluster.logs / _LOGS_PER_S,
        memory_gb=_at(rows, "memory_gb"),
        latest_gb=batches_held * (rows * _LAG_BYTES + cluster.logs * _LOG_BYTES) / _GB,
        history_gb_a_day=rows * a_day * _HISTORY_BYTES / _GB,
    )


def _at(rows: int, name: str) -> float:
    """A figure of `_Size`, on a straight line between the two nearest sizes on logarithmic scales."""
    upper = next((at for at in range(1, len(MEASURED)) if rows <= MEASURED[at].rows), len(MEASURED) - 1)
    less, more = MEASURED[upper - 1], MEASURED[upper]
    share = math.log(max(1, rows) / less.rows) / math.log(more.rows / less.rows)
    first, second = getattr(less, name), getattr(more, name)
    # Fewer rows than measured cost as much as the fewest: any batch costs that.
    return float(first * (second / first) ** max(0.0, share))


def warnings(config: Config, cluster: Cluster) -> Iterator[str]:
    """One line for each setting that does not suit such a cluster, beginning with its key."""
    takes = capacity(config, cluster)
    source, trigger_s = config.source, config.trigger.interval_s
    if cluster.commits_per_s > takes.commits_per_s:
        yield (
            f"source.max_offsets_per_trigger: {source.max_offsets_per_trigger} take about "
            f"{takes.commits_per_s:,.0f} commits/s of {cluster.commits_per_s:,.0f}, so lagwise falls behind; raise it "
            "(each million takes 150 MB), exclude groups, or take more cores"
        )
    if takes.batch_s > trigger_s:
        yield (
            f"trigger.interval_s: a batch of {cluster.partitions:,} partitions takes about {takes.batch_s:.0f} s, more "
            f"than {trigger_s}; raise it, or take more cores"
        )
    if takes.log_offsets_s > source.request_timeout_s:
        yield (
            f"source.request_timeout_s: log offsets of {cluster.logs:,} partitions take about "
            f"{takes.log_offsets_s:.0f} s, more than {source.request_timeout_s}, so some have no lag; raise it, or "
            "exclude topics"
        )
    heap = config.spark.get("spark.driver.memory", _DEFAULT_HEAP)
    given = _gigabytes(heap)
    if given is not None and (
        (given < _HEAP_GB and cluster.partitions > _FEW_ROWS)
        or (given <= _HEAP_GB and cluster.partitions > _ROWS_ON_IT)
    ):
        yield (
            f'spark."spark.driver.memory": {heap} has not been tried with {cluster.partitions:,} partitions; '
            f"{_HEAP_GB}g takes up to {_ROWS_ON_IT:,}, so raise it"
        )


def _gigabytes(size: str) -> float | None:
    """Gigabytes of a size in Java's notation; None if it is not a size."""
    found = re.fullmatch(r"(\d+)([kmgt])b?", size.strip().lower())
    return None if found is None else int(found[1]) * 1024 ** ("kmgt".index(found[2]) + 1) / 1024**3
