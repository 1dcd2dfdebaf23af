"""A group as it was: its lag and its age, from the rows of `lag_history` of its partitions, and when it changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.listings.spans import between
from pipeline.operate.output import iterate
from pipeline.operate.serve.snapshot import Snapshot

Point: TypeAlias = tuple[datetime, float | None]
"""A moment, and a figure of the partitions for which it was known then; None if it was for none."""

Mark: TypeAlias = tuple[datetime, str]
"""A moment, and what happened."""

_POINTS = 121
_COLUMNS = ("topic", "partition", "updated_at", "lag", "lag_seconds")
_KEY = ["topic", "partition"]


class Past(NamedTuple):
    """Figures of a group at the same moments."""

    lag: list[Point]
    """Sum over its partitions, in records."""
    age: list[Point]
    """Age of the oldest unread record, in seconds."""


def past_of(
    found: Snapshot, group_id: str, *, end: datetime, spans: Sequence[timedelta], max_gap: timedelta
) -> Past:
    """The group at moments evenly apart.

    Args:
        found: The tables.
        group_id: The group.
        end: The last moment.
        spans: From the first to the last, ascending; the shortest that leaves out nothing of the longest is taken.
        max_gap: How far apart two rows of a partition may be; after a longer time its figures are unknown.

    Raises:
        StoreError: The table cannot be read.
    """
    own = between(end - spans[-1] - max_gap, end) & (pc.field("group_id") == group_id)
    rows = found.read("lag_history", columns=_COLUMNS, where=own)
    first = pc.min(rows["updated_at"]).as_py()
    span = next((one for one in spans if first is not None and end - one <= first), spans[-1])
    moments_us = np.linspace(_us(end - span), _us(end), _POINTS).astype(np.int64)
    sums, known = np.zeros(_POINTS), np.zeros(_POINTS, np.int64)
    oldest = np.full(_POINTS, np.nan)
    for times_us, lags, ages in _by_partition(rows):
        newest = np.searchsorted(times_us, moments_us, side="right") - 1
        holds = (newest >= 0) & (moments_us - times_us[newest] <= _us(max_gap))
        is_known = holds & ~np.isnan(lags[newest])
        sums[is_known] += lags[newest[is_known]]
        known += is_known
        oldest = np.fmax(oldest, np.where(holds, ages[newest], np.nan))
    moments = [datetime.fromtimestamp(at / 1e6, tz=timezone.utc) for at in moments_us.tolist()]
    lag = [int(value) if n else None for value, n in zip(sums.tolist(), known.tolist(), strict=True)]
    age = [None if np.isnan(value) else value for value in oldest.tolist()]
    return Past(lag=list(zip(moments, lag, strict=True)), age=list(zip(moments, age, strict=True)))


def changes(found: Snapshot, group_id: str, *, start: datetime, end: datetime) -> list[Mark]:
    """When the group's members or generation changed, as `lagwise rebalances` lists it.

    Raises:
        StoreError: The table cannot be read.
    """
    own = between(start, end) & (pc.field("group_id") == group_id)
    try:
        rows = found.read("group_history", columns=("updated_at", "why"), where=own)
    except MissingTableError:
        # An earlier version has written these tables.
        return []
    return [(row["updated_at"], row["why"]) for row in iterate(rows)]


def _by_partition(rows: pa.Table) -> list[tuple[Any, Any, Any]]:
    """Times in microseconds, lags and ages of each partition, in the order of time; nan is unknown."""
    ordered = rows.sort_by([(name, "ascending") for name in (*_KEY, "updated_at")])
    counted = ordered.group_by(_KEY).aggregate([("lag", "count", pc.CountOptions(mode="all"))])
    counts = [row["lag_count"] for row in iterate(counted.sort_by([(name, "ascending") for name in _KEY]))]
    times_us = ordered["updated_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    figures = (times_us, *(ordered[name].cast(pa.float64()).to_numpy() for name in ("lag", "lag_seconds")))
    cuts = np.cumsum(counts)[:-1]
    return list(zip(*(np.split(one, cuts) for one in figures), strict=True)) if counts else []


def _us(value: datetime | timedelta) -> int:
    whole = value if isinstance(value, timedelta) else value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return whole // timedelta(microseconds=1)
