"""History of groups: lag and age at given moments, from rows of `lag_history`, and changes of members.

A row is in force from its time until the next row of its partition, but no longer than a gap that the caller sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Floats, Int64s
from pipeline.errors import MissingTableError
from pipeline.operate.listings.spans import between
from pipeline.operate.output import iterate
from pipeline.operate.serve.snapshot import Snapshot
from pipeline.row_keys import LAG_KEY, codes

Series: TypeAlias = Sequence[int | None]
"""Lag of a group at each moment, in records; None where it was unknown for all partitions."""
Point: TypeAlias = tuple[datetime, float | None]
"""A moment, and a figure over the partitions for which it was then known; None without any."""
Mark: TypeAlias = tuple[datetime, str]
"""A moment, and what happened."""

COLUMNS = ("group_id", "topic", "partition", "updated_at", "lag")
"""Columns that `lags_of_groups` needs."""
MOST_ROWS = 1_000_000
"""Rows of a group that are read at a time: they take about 300 MiB."""
_POINTS = 121


class Past(NamedTuple):
    """Figures of a group at the same moments."""

    lag: list[Point]
    """Sum over its partitions, in records."""
    age: list[Point]
    """Age of the oldest unread record, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InForce:
    """Rows that are in force at one moment or more, ordered by partition and time."""

    row: Int64s
    """Index of each row in its table."""
    group: Int64s
    """Index of its group in `names`."""
    first: Int64s
    """Index of the first moment at which it is in force."""
    after: Int64s
    """Index of the first moment at which it is no longer in force; larger than `first`."""
    names: list[str]


def past_of(
    found: Snapshot, group_id: str, *, end: datetime, spans: Sequence[timedelta], max_gap: timedelta
) -> Past | None:
    """Figures of the group at evenly spaced moments; None if even the shortest span has more than `MOST_ROWS` rows.

    Args:
        found: The tables.
        group_id: The group.
        end: The last moment.
        spans: Choices of the time from first to last moment, ascending; of those with at most `MOST_ROWS`
            rows the shortest that covers all rows is taken.
        max_gap: How far apart two rows of a partition may be; after a longer time its figures are unknown.

    Raises:
        StoreError: The table cannot be read.
    """

    def own(span: timedelta) -> pc.Expression:
        return between(end - span - max_gap, end) & (pc.field("group_id") == group_id)

    history, spans = found.tables["lag_history"], list(spans)
    # Counted by the rows: the log's statistics know no groups.
    while history.count(own(spans[-1])) > MOST_ROWS:
        spans.pop()
        if not spans:
            return None
    rows = history.read(columns=(*COLUMNS, "lag_seconds"), where=own(spans[-1]))
    first = pc.min(rows["updated_at"]).as_py()
    span = next((one for one in spans if first is not None and end - one <= first), spans[-1])
    moments_us = np.linspace(_us(end - span), _us(end), _POINTS).astype(np.int64)
    in_force = _in_force(rows, moments_us, max_gap)
    lags = _sums(in_force, rows, _POINTS).get(group_id, [None] * _POINTS)
    moments = [datetime.fromtimestamp(at_us / 1e6, tz=timezone.utc) for at_us in moments_us.tolist()]
    return Past(
        lag=list(zip(moments, lags, strict=True)), age=list(zip(moments, _ages(in_force, rows), strict=True))
    )


def lags_of_groups(rows: pa.Table, *, moments: Sequence[datetime], max_gap: timedelta) -> dict[str, Series]:
    """Sum of the known lags of each group's partitions at each of the moments, which ascend.

    `rows` have `COLUMNS` of `lag_history`, in any order; `max_gap` is that of `past_of`.
    """
    moments_us = np.array([_us(at) for at in moments], np.int64)
    return _sums(_in_force(rows, moments_us, max_gap), rows, len(moments))


def changes(found: Snapshot, group_id: str, *, start: datetime, end: datetime) -> list[Mark]:
    """When the group's members or generation changed, as `lagwise rebalances` lists it.

    Raises:
        StoreError: The table cannot be read.
    """
    own = between(start, end) & (pc.field("group_id") == group_id)
    try:
        rows = found.read("group_history", columns=("updated_at", "why"), where=own)
    except MissingTableError:
        # An earlier version wrote these tables.
        return []
    return [(row["updated_at"], row["why"]) for row in iterate(rows)]


def _in_force(rows: pa.Table, moments_us: Int64s, max_gap: timedelta) -> _InForce:
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    group = groups.indices.to_numpy().astype(np.int64)
    (key,) = codes(LAG_KEY, rows)
    at_us = rows["updated_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    order = np.lexsort((at_us, key))
    key, at_us = key[order], at_us[order]
    first = np.searchsorted(moments_us, at_us)
    after = np.searchsorted(moments_us, at_us + max_gap // timedelta(microseconds=1), side="right")
    is_replaced = key[1:] == key[:-1]
    after[:-1][is_replaced] = np.minimum(after[:-1], first[1:])[is_replaced]
    is_seen = after > first
    return _InForce(
        row=order[is_seen],
        group=group[order[is_seen]],
        first=first[is_seen],
        after=after[is_seen],
        names=groups.dictionary.to_pylist(),
    )


def _sums(in_force: _InForce, rows: pa.Table, n_moments: int) -> dict[str, Series]:
    """Sum of the known lags at each moment, by group."""
    lag = pc.fill_null(rows["lag"], -1).to_numpy()[in_force.row]
    is_known = lag >= 0
    shape = len(in_force.names), n_moments + 1
    cells = in_force.group[is_known] * shape[1]
    starts, ends = cells + in_force.first[is_known], cells + in_force.after[is_known]

    def running(weights: Floats) -> Floats:
        """Sum of the weights in force at each moment. They are whole numbers, so the sums are exact."""
        size = shape[0] * shape[1]
        changes = np.bincount(starts, weights, size) - np.bincount(ends, weights, size)
        return np.cumsum(changes.reshape(shape), axis=1)[:, :n_moments]

    sums, known = running(lag[is_known].astype(np.float64)), running(np.ones(len(starts)))
    return {
        name: [int(value) if n else None for value, n in zip(values, counts, strict=True)]
        for name, values, counts in zip(in_force.names, sums.tolist(), known.tolist(), strict=True)
    }


def _ages(in_force: _InForce, rows: pa.Table) -> list[float | None]:
    """Age of the oldest unread record at each of `_POINTS` moments."""
    ages = rows["lag_seconds"].cast(pa.float64()).to_numpy()[in_force.row]
    oldest = np.full(_POINTS, np.nan)
    lengths = in_force.after - in_force.first
    # Moments of each row, one row after the other.
    moment = np.arange(lengths.sum()) + np.repeat(in_force.first - (np.cumsum(lengths) - lengths), lengths)
    np.fmax.at(oldest, moment, np.repeat(ages, lengths))
    return [None if np.isnan(age) else age for age in oldest.tolist()]


def _us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
