"""The lag of all groups over the last hour, from one read of `lag_history`."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.operate.listings.spans import between
from pipeline.operate.serve.snapshot import Snapshot

Series: TypeAlias = Sequence[int | None]
"""Lag at each minute, the oldest first; None where that of no partition was known."""

Ints: TypeAlias = npt.NDArray[np.int64]

SPAN = timedelta(hours=1)
POINTS = 61
_STEP_US = 60_000_000
_COLUMNS = ("group_id", "topic", "partition", "updated_at", "lag")
MOST_ROWS = 1_500_000
"""They take about 1 s and 300 MiB, once a minute."""


class Sparks:
    """Reads the last hour once a minute, whoever asks how often."""

    def __init__(self, *, max_gap: timedelta, most_rows: int = MOST_ROWS) -> None:
        """Read nothing yet.

        Args:
            max_gap: How far apart two rows of a partition may be; after a longer time its lag is unknown.
            most_rows: With more rows in the hour nothing is read.
        """
        self._max_gap = max_gap
        self._most_rows = most_rows
        self._lock = threading.Lock()
        self._found: tuple[datetime, Mapping[str, Series]] | None = None

    def of(self, found: Snapshot, *, end: datetime) -> Mapping[str, Series]:
        """By group, its lag up to the minute of `end`; no group where there are too many rows.

        Raises:
            StoreError: The table cannot be read.
        """
        end = end.replace(second=0, microsecond=0)
        with self._lock:
            if self._found is None or self._found[0] != end:
                self._found = end, self._read(found, end)
            return self._found[1]

    def _read(self, found: Snapshot, end: datetime) -> Mapping[str, Series]:
        start = end - SPAN
        own = between(start - self._max_gap, end)
        # Counted by the rows: the log's statistics do not have the column.
        if found.tables["lag_history"].count(own) > self._most_rows:
            return {}
        rows = found.read("lag_history", columns=_COLUMNS, where=own)
        return series(rows, start=start, max_gap=self._max_gap)


def series(rows: pa.Table, *, start: datetime, max_gap: timedelta) -> dict[str, Series]:
    """By group, the sum of what was known of its partitions at each minute.

    Args:
        rows: Of `lag_history`, in any order.
        start: The first minute.
        max_gap: As `Sparks` has it.
    """
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    of_group = groups.indices.to_numpy().astype(np.int64)
    key = _key(of_group, rows)
    since_us = rows["updated_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() - _us(start)
    order = np.lexsort((since_us, key))
    key, since_us, of_group = key[order], since_us[order], of_group[order]
    lag = pc.fill_null(rows["lag"], -1).to_numpy()[order]
    first, after = _minutes(key, since_us, max_gap // timedelta(microseconds=1))
    holds = (lag >= 0) & (after > first)
    cells = of_group[holds] * (POINTS + 1)
    opens, closes = cells + first[holds], cells + after[holds]
    size = len(groups.dictionary) * (POINTS + 1)

    def running(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Sums at each minute of what has opened and not closed; whole numbers, so nothing is lost."""
        changes = np.bincount(opens, weights, size) - np.bincount(closes, weights, size)
        return np.cumsum(changes.reshape(-1, POINTS + 1), axis=1)[:, :POINTS]

    sums, known = running(lag[holds].astype(np.float64)), running(np.ones(len(opens)))
    return {
        name: [int(value) if n else None for value, n in zip(values, counts, strict=True)]
        for name, values, counts in zip(
            groups.dictionary.to_pylist(), sums.tolist(), known.tolist(), strict=True
        )
    }


def _key(of_group: Ints, rows: pa.Table) -> Ints:
    """A number for each partition of a group."""
    topics = rows["topic"].combine_chunks().dictionary_encode()
    partition = rows["partition"].to_numpy().astype(np.int64)
    widest = int(partition.max(initial=0)) + 1
    of_topic = topics.indices.to_numpy().astype(np.int64)
    key: Ints = (of_group * len(topics.dictionary) + of_topic) * widest + partition
    return key


def _minutes(key: Ints, since_us: Ints, max_gap_us: int) -> tuple[Ints, Ints]:
    """The first minute at which each row holds, and the first at which it does so no longer."""
    first = -(-since_us // _STEP_US)
    after = (since_us + max_gap_us) // _STEP_US + 1
    is_replaced = key[1:] == key[:-1]
    after[:-1][is_replaced] = np.minimum(after[:-1], first[1:])[is_replaced]
    return np.clip(first, 0, POINTS), np.clip(after, 0, POINTS)


def _us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
