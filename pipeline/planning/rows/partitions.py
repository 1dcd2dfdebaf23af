"""Plan: the tables of log offsets and of lag to the partitions of each group, as arrays.

Both tables are sorted once, by topic and partition number; a group's partitions are then slices of the one, in which
its own rows of the other are found by binary search.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from assignor.model.topics import java_order
from pipeline.lag.columns import floats, int64s, millis
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts

_NUMBERS = 2**32
"""More than any partition number: topic times this plus partition sorts like the pair."""


class GroupPartitions:
    """The partitions of every group, to be asked for one group after another."""

    def __init__(self, topic_offsets: pa.Table, lags: pa.Table) -> None:
        """Sort both tables: n log n in their rows.

        Args:
            topic_offsets: `schemas.TOPIC_OFFSETS`.
            lags: `schemas.PARTITION_LAG`.
        """
        self._logs = _Logs(topic_offsets)
        self._commits = _Commits(lags, self._logs)

    def of(self, group_id: str, topics: Iterable[str]) -> PartitionFacts:
        """Those of the topics that the group subscribes to, as far as they exist."""
        logs, commits = self._logs, self._commits
        rows = logs.rows(topics)
        found, known = commits.find(group_id, logs.key[rows])
        return PartitionFacts(
            topic=[logs.names[code] for code in (logs.key[rows] // _NUMBERS).tolist()],
            partition=logs.key[rows] % _NUMBERS,
            committed=np.where(known, commits.committed[found], UNKNOWN),
            log_start=logs.log_start[rows],
            log_end=logs.log_end[rows],
            observed_at_ms=logs.observed_at_ms[rows],
            arrival_rate=logs.arrival_rate[rows],
            drain_rate=np.where(known, commits.drain_rate[found], np.nan),
            lag_age_s=np.where(known, commits.lag_age_s[found], np.nan),
            incomparable=known & commits.incomparable[found],
            unanswered=logs.error.take(pa.array(rows)).to_pylist(),
        )


class _Logs:
    """Partitions that exist, sorted by topic as Java sorts names, and by number."""

    def __init__(self, topic_offsets: pa.Table) -> None:
        alive = topic_offsets.filter(pc.is_null(topic_offsets["deleted_at"])).combine_chunks()
        self.names = sorted(pc.unique(alive["topic"]).to_pylist(), key=java_order)
        self._codes = {name: code for code, name in enumerate(self.names)}
        key = _codes(alive["topic"], self._codes) * _NUMBERS + int64s(_array(alive["partition"]))
        order = np.argsort(key, kind="stable")
        self.key: Int64s = key[order]
        self.log_start = int64s(_array(alive["log_start_offset"]))[order]
        self.log_end = int64s(_array(alive["log_end_offset"]))[order]
        self.observed_at_ms = millis(_array(alive["observed_at"]))[order]
        self.arrival_rate = floats(_array(alive["arrival_rate"]))[order]
        self.error: pa.Array = _array(alive["error"]).take(pa.array(order))

    def keys(self, rows: pa.Table) -> Int64s:
        """Sorting keys of rows with topic and partition; negative where the topic does not exist."""
        return _codes(rows["topic"], self._codes) * _NUMBERS + int64s(_array(rows["partition"]))

    def rows(self, topics: Iterable[str]) -> Int64s:
        """Indices of all partitions of these topics, ascending."""
        codes = np.array(sorted({self._codes[name] for name in topics if name in self._codes}), np.int64)
        begin = np.searchsorted(self.key, codes * _NUMBERS)
        end = np.searchsorted(self.key, (codes + 1) * _NUMBERS)
        ranges = [np.arange(first, last) for first, last in zip(begin.tolist(), end.tolist(), strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *ranges])


class _Commits:
    """Rows of `partition_lag`, sorted by group and then as the logs are."""

    def __init__(self, lags: pa.Table, logs: _Logs) -> None:
        rows = lags.combine_chunks()
        self._groups = {name: code for code, name in enumerate(pc.unique(rows["group_id"]).to_pylist())}
        group, key = _codes(rows["group_id"], self._groups), logs.keys(rows)
        order = np.lexsort((key, group))
        self._key = key[order]
        self._begin = np.searchsorted(group[order], np.arange(len(self._groups) + 1))
        committed = int64s(_array(rows["committed_offset"]))
        # A commit whose lag cannot be told was made in another topic of that name: the topic is there.
        incomparable = (committed != UNKNOWN) & pc.is_null(_array(rows["lag"])).to_numpy(zero_copy_only=False)
        # One more, for whoever looks beyond the end.
        self.committed = np.append(committed[order], UNKNOWN)
        self.incomparable = np.append(incomparable[order], False)
        self.drain_rate = np.append(floats(_array(rows["drain_rate"]))[order], np.nan)
        self.lag_age_s = np.append(floats(_array(rows["lag_seconds"]))[order], np.nan)

    def find(self, group_id: str, keys: Int64s) -> tuple[Int64s, Bools]:
        """Where the group's rows of these keys are, and which of them there are."""
        code = self._groups.get(group_id)
        begin, end = (0, 0) if code is None else self._begin[code : code + 2]
        own = self._key[begin:end]
        at = np.searchsorted(own, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = at < len(own)
        known[inside] = own[at[inside]] == keys[inside]
        return begin + at, known


def _codes(names: pa.ChunkedArray, codes: dict[str, int]) -> Int64s:
    """The code of each name, -1 where it has none."""
    encoded = _array(names).dictionary_encode()
    known = np.array([*(codes.get(name, -1) for name in encoded.dictionary.to_pylist()), -1], np.int64)
    return known[int64s(encoded.indices)] if len(encoded) else np.zeros(0, np.int64)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
