"""Plan: the tables of log offsets and of lag to the partitions of each group, as arrays.

Both tables are sorted once, by topic and partition number; a group's partitions are then slices of the one, in which
its own rows of the other are found by binary search.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Int64s
from assignor.model.java_order import java_order
from pipeline.lag.columns import floats, int64s, millis
from pipeline.lag.lag import UNKNOWN, lag
from pipeline.lag.readable import readable_end
from pipeline.planning.facts import PartitionFacts

_NUMBERS = 2**32
"""More than any partition number: topic times this plus partition sorts like the pair."""


class GroupPartitions:
    """The partitions of every group, looked up group by group."""

    def __init__(self, topic_offsets: pa.Table, lags: pa.Table) -> None:
        """Sort both tables: n log n in their rows.

        Args:
            topic_offsets: `schemas.TOPIC_OFFSETS`.
            lags: `schemas.PARTITION_LAG`.
        """
        self._logs = _Logs(topic_offsets)
        self._commits = _Commits(lags, self._logs)

    def of(self, group_id: str, topics: Iterable[str]) -> PartitionFacts:
        """Return the partitions of the group's subscribed topics that exist."""
        logs, commits = self._logs, self._commits
        places = logs.places(topics)
        rows = np.concatenate([np.zeros(0, np.int64), *(np.arange(begin, end) for _, begin, end in places)])
        keys = logs.key[rows]
        found = commits.find(group_id, keys)
        observed_ms, commit_ms = logs.observed_at_ms[rows], commits.commit_ms[found]
        is_dated = (observed_ms != UNKNOWN) & (commit_ms != UNKNOWN)
        facts = PartitionFacts(
            topic=[name for name, begin, end in places for _ in range(begin, end)],
            partition=keys % _NUMBERS,
            committed=commits.committed[found],
            log_start=logs.log_start[rows],
            log_end=logs.log_end[rows],
            observed_at_ms=observed_ms,
            arrival_rate=logs.arrival_rate[rows],
            drain_rate=commits.drain_rate[found],
            lag_age_s=commits.lag_age_s[found],
            lag_at_commit=commits.lag_at_commit[found],
            commit_age_s=np.where(is_dated, np.maximum(observed_ms - commit_ms, 0) / 1000, np.nan),
            commit_interval_s=commits.commit_interval_s[found],
            commit_rate=commits.commit_rate[found],
            commit_span_s=commits.commit_span_s[found],
            least_lag=commits.least_lag[found],
            incomparable=commits.incomparable[found],
            unanswered=logs.error[rows].tolist(),
        )
        return up_to_readable(facts, logs.readable[rows], logs.last_stable[rows])


def up_to_readable(partitions: PartitionFacts, readable: Int64s, last_stable: Int64s) -> PartitionFacts:
    """Return the partitions, each cut at its group's readable end: records held back by a transaction are no evidence.

    Args:
        partitions: With the ends of their logs.
        readable: `lag.readable.readable_offset`, ``[P]``.
        last_stable: Last stable offset, ``[P]``; UNKNOWN without an answer.
    """
    end = readable_end(readable, last_stable, committed=partitions.committed, log_end=partitions.log_end)
    is_held = end < partitions.log_end
    if not is_held.any():
        return partitions
    at_end = is_held & (lag(partitions.committed, partitions.log_start, end) == 0)
    return replace(partitions, log_end=end, lag_age_s=np.where(at_end, 0.0, partitions.lag_age_s))


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
        self.readable = int64s(_array(alive["readable_offset"]))[order]
        self.last_stable = int64s(_array(alive["last_stable_offset"]))[order]
        self.observed_at_ms = millis(_array(alive["observed_at"]))[order]
        self.arrival_rate = floats(_array(alive["arrival_rate"]))[order]
        self.error = np.array(_array(alive["error"]).to_pylist(), np.object_)[order]
        ends = np.searchsorted(self.key, np.arange(len(self.names) + 1) * _NUMBERS)
        self._places = dict(zip(self.names, pairwise(ends.tolist()), strict=True))

    def keys(self, rows: pa.Table) -> Int64s:
        """Sorting keys of rows with topic and partition; negative where the topic does not exist."""
        return _codes(rows["topic"], self._codes) * _NUMBERS + int64s(_array(rows["partition"]))

    def places(self, topics: Iterable[str]) -> list[tuple[str, int, int]]:
        """For each of these topics that exists, its name, and where its partitions begin and end; ascending."""
        known = sorted((*self._places[name], name) for name in set(topics) if name in self._places)
        return [(name, begin, end) for begin, end, name in known]


class _Commits:
    """Rows of `partition_lag`, sorted by group and then as the logs are."""

    def __init__(self, lags: pa.Table, logs: _Logs) -> None:
        rows = lags.combine_chunks()
        names = pc.unique(rows["group_id"]).to_pylist()
        group = _codes(rows["group_id"], {name: code for code, name in enumerate(names)})
        key = logs.keys(rows)
        order = np.lexsort((key, group))
        self._key = key[order]
        ends = np.searchsorted(group[order], np.arange(len(names) + 1))
        self._places = dict(zip(names, pairwise(ends.tolist()), strict=True))
        committed = int64s(_array(rows["committed_offset"]))
        # A commit whose lag cannot be told was made in another topic of that name: the topic is there.
        incomparable = (committed != UNKNOWN) & pc.is_null(_array(rows["lag"])).to_numpy(zero_copy_only=False)
        # One more, for what a group has not committed.
        self.committed = np.append(committed[order], UNKNOWN)
        self.incomparable = np.append(incomparable[order], False)
        self.commit_ms = np.append(millis(_array(rows["commit_timestamp"]))[order], UNKNOWN)
        self.lag_at_commit = np.append(int64s(_array(rows["lag_at_commit"]))[order], UNKNOWN)
        self.least_lag = np.append(int64s(_array(rows["least_lag_at_commit"]))[order], UNKNOWN)
        rates = ("drain_rate", "lag_seconds", "commit_interval_seconds", "commit_rate", "commit_span_seconds")
        self.drain_rate, self.lag_age_s, self.commit_interval_s, self.commit_rate, self.commit_span_s = (
            np.append(floats(_array(rows[name]))[order], np.nan) for name in rates
        )

    def find(self, group_id: str, keys: Int64s) -> Int64s | slice:
        """Where the group's rows of these keys are; the row after the last where it has none."""
        begin, end = self._places.get(group_id, (0, 0))
        own = self._key[begin:end]
        # Most groups have committed in every partition they read, and then there is nothing to look for.
        if np.array_equal(own, keys):
            return slice(begin, end)
        at = np.searchsorted(own, keys)
        inside = np.minimum(at, len(own) - 1)
        known = own[inside] == keys if len(own) else np.zeros(len(keys), np.bool_)
        found: Int64s = np.where(known, begin + at, len(self._key))
        return found


def _codes(names: pa.ChunkedArray, codes: dict[str, int]) -> Int64s:
    """The code of each name, -1 where it has none."""
    encoded = _array(names).dictionary_encode()
    known = np.array([*(codes.get(name, -1) for name in encoded.dictionary.to_pylist()), -1], np.int64)
    return known[int64s(encoded.indices)] if len(encoded) else np.zeros(0, np.int64)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
