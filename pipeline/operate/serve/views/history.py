"""A group as it was: its lag, added up from the rows of `lag_history` of its partitions, and when it changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.listings.spans import between
from pipeline.operate.output import iterate
from pipeline.operate.serve.snapshot import Snapshot

Point: TypeAlias = tuple[datetime, int | None]
"""A moment, and the lag of the partitions whose lag was known then; None if none was."""

Mark: TypeAlias = tuple[datetime, str]
"""A moment, and what happened."""

_POINTS = 121
_COLUMNS = ("topic", "partition", "updated_at", "lag")
_KEY = ["topic", "partition"]


def lag_over_time(
    found: Snapshot, group_id: str, *, end: datetime, spans: Sequence[timedelta], max_gap: timedelta
) -> list[Point]:
    """The lag of the group at moments evenly apart.

    Args:
        found: The tables.
        group_id: The group.
        end: The last moment.
        spans: From the first to the last, ascending; the shortest that leaves out nothing of the longest is taken.
        max_gap: How far apart two rows of a partition may be; after a longer time its lag is unknown.

    Raises:
        StoreError: The table cannot be read.
    """
    own = between(end - spans[-1] - max_gap, end) & (pc.field("group_id") == group_id)
    rows = found.read("lag_history", columns=_COLUMNS, where=own)
    first = pc.min(rows["updated_at"]).as_py()
    span = next((one for one in spans if first is not None and end - one <= first), spans[-1])
    moments_us = np.linspace(_us(end - span), _us(end), _POINTS).astype(np.int64)
    sums, known = np.zeros(_POINTS), np.zeros(_POINTS, np.int64)
    for times_us, lags in _by_partition(rows):
        newest = np.searchsorted(times_us, moments_us, side="right") - 1
        is_known = (newest >= 0) & (moments_us - times_us[newest] <= _us(max_gap)) & ~np.isnan(lags[newest])
        sums[is_known] += lags[newest[is_known]]
        known += is_known
    return [
        (datetime.fromtimestamp(at / 1e6, tz=timezone.utc), int(lag) if n else None)
        for at, lag, n in zip(moments_us.tolist(), sums.tolist(), known.tolist(), strict=True)
    ]


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


def _by_partition(rows: pa.Table) -> list[tuple[Any, Any]]:
    """Times in microseconds and lags of each partition, in the order of time; a lag of nan is unknown."""
    ordered = rows.sort_by([(name, "ascending") for name in (*_KEY, "updated_at")])
    counted = ordered.group_by(_KEY).aggregate([("lag", "count", pc.CountOptions(mode="all"))])
    counts = [row["lag_count"] for row in iterate(counted.sort_by([(name, "ascending") for name in _KEY]))]
    times_us = ordered["updated_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    lags = ordered["lag"].cast(pa.float64()).to_numpy()
    cuts = np.cumsum(counts)[:-1]
    return list(zip(np.split(times_us, cuts), np.split(lags, cuts), strict=True)) if counts else []


def _us(value: datetime | timedelta) -> int:
    whole = value if isinstance(value, timedelta) else value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return whole // timedelta(microseconds=1)
