"""Groups as they were: lag and age at moments, from the rows of `lag_history` of their partitions, and their changes.

A row holds from its time until the next row of its partition, but no longer than a gap that the caller gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.listings.spans import between
from pipeline.operate.output import iterate
from pipeline.operate.serve.snapshot import Snapshot

Series: TypeAlias = Sequence[int | None]
"""Lag of a group at each moment, in records; None where that of no partition was known."""
Point: TypeAlias = tuple[datetime, float | None]
"""A moment, and a figure of the partitions for which it was known then; None if it was for none."""
Mark: TypeAlias = tuple[datetime, str]
"""A moment, and what happened."""
Ints: TypeAlias = npt.NDArray[np.int64]

COLUMNS = ("group_id", "topic", "partition", "updated_at", "lag")
"""Columns that `lags_of_groups` needs."""
_POINTS = 121


class Past(NamedTuple):
    """Figures of a group at the same moments."""

    lag: list[Point]
    """Sum over its partitions, in records."""
    age: list[Point]
    """Age of the oldest unread record, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The rows that hold at one moment or more, by partition and time."""

    row: Ints
    """Number of each in its table."""
    group: Ints
    """Number of its group in `names`."""
    first: Ints
    """Number of the first moment at which it holds."""
    after: Ints
    """Number of the first moment at which it no longer does; larger than `first`."""
    names: list[str]


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
    rows = found.read("lag_history", columns=(*COLUMNS, "lag_seconds"), where=own)
    first = pc.min(rows["updated_at"]).as_py()
    span = next((one for one in spans if first is not None and end - one <= first), spans[-1])
    moments_us = np.linspace(_us(end - span), _us(end), _POINTS).astype(np.int64)
    held = _held(rows, moments_us, max_gap)
    lags = _sums(held, rows, _POINTS).get(group_id, [None] * _POINTS)
    moments = [datetime.fromtimestamp(at_us / 1e6, tz=timezone.utc) for at_us in moments_us.tolist()]
    return Past(
        lag=list(zip(moments, lags, strict=True)), age=list(zip(moments, _ages(held, rows), strict=True))
    )


def lags_of_groups(rows: pa.Table, *, moments: Sequence[datetime], max_gap: timedelta) -> dict[str, Series]:
    """By group, the sum of what was known of its partitions at each moment.

    Args:
        rows: `COLUMNS` of `lag_history`, in any order.
        moments: Ascending.
        max_gap: As `past_of` has it.
    """
    moments_us = np.array([_us(at) for at in moments], np.int64)
    return _sums(_held(rows, moments_us, max_gap), rows, len(moments))


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


def _held(rows: pa.Table, moments_us: Ints, max_gap: timedelta) -> _Held:
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    group = groups.indices.to_numpy().astype(np.int64)
    key = _key(group, rows)
    at_us = rows["updated_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    order = np.lexsort((at_us, key))
    key, at_us = key[order], at_us[order]
    first = np.searchsorted(moments_us, at_us)
    after = np.searchsorted(moments_us, at_us + max_gap // timedelta(microseconds=1), side="right")
    is_replaced = key[1:] == key[:-1]
    after[:-1][is_replaced] = np.minimum(after[:-1], first[1:])[is_replaced]
    holds = after > first
    return _Held(
        row=order[holds],
        group=group[order[holds]],
        first=first[holds],
        after=after[holds],
        names=groups.dictionary.to_pylist(),
    )


def _key(group: Ints, rows: pa.Table) -> Ints:
    """A number for each partition of a group."""
    topics = rows["topic"].combine_chunks().dictionary_encode()
    partition = rows["partition"].to_numpy().astype(np.int64)
    widest = int(partition.max(initial=0)) + 1
    topic = topics.indices.to_numpy().astype(np.int64)
    key: Ints = (group * len(topics.dictionary) + topic) * widest + partition
    return key


def _sums(held: _Held, rows: pa.Table, n_moments: int) -> dict[str, Series]:
    """By group, the lag that was known at each moment."""
    lag = pc.fill_null(rows["lag"], -1).to_numpy()[held.row]
    is_known = lag >= 0
    shape = len(held.names), n_moments + 1
    cells = held.group[is_known] * shape[1]
    opens, closes = cells + held.first[is_known], cells + held.after[is_known]

    def running(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Sums at each moment of what has opened and not closed; whole numbers, so nothing is lost."""
        size = shape[0] * shape[1]
        opened = np.bincount(opens, weights, size) - np.bincount(closes, weights, size)
        return np.cumsum(opened.reshape(shape), axis=1)[:, :n_moments]

    sums, known = running(lag[is_known].astype(np.float64)), running(np.ones(len(opens)))
    return {
        name: [int(value) if n else None for value, n in zip(values, counts, strict=True)]
        for name, values, counts in zip(held.names, sums.tolist(), known.tolist(), strict=True)
    }


def _ages(held: _Held, rows: pa.Table) -> list[float | None]:
    """Age of the oldest record at each of `_POINTS` moments."""
    ages = rows["lag_seconds"].cast(pa.float64()).to_numpy()[held.row]
    oldest = np.full(_POINTS, np.nan)
    lengths = held.after - held.first
    # Moments of each row, one row after the other.
    moment = np.arange(lengths.sum()) + np.repeat(held.first - (np.cumsum(lengths) - lengths), lengths)
    np.fmax.at(oldest, moment, np.repeat(ages, lengths))
    return [None if np.isnan(age) else age for age in oldest.tolist()]


def _us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
