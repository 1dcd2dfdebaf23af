"""Plan: the tables of log offsets and of lag to the partitions of each group, as arrays.

Both tables are sorted and joined once. There are thousands of groups, and most have committed in every partition that
they read: what they read is a slice of the result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Int64s
from assignor.model.java_order import java_order
from assignor.model.topics import Topics
from pipeline.lag.columns import floats, int64s, millis
from pipeline.lag.lag import UNKNOWN, lag
from pipeline.lag.readable import readable_end
from pipeline.planning.facts import PartitionFacts

_NUMBERS = 2**32
"""More than any partition number: topic times this plus partition sorts like the pair."""

_Value = TypeVar("_Value", bound=np.generic)


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
        self._joined = _joined(self._logs, self._commits)
        self._topics: dict[tuple[str, ...], Topics] = {}

    def of(self, group_id: str, topics: Iterable[str]) -> PartitionFacts:
        """Return the partitions of the group's subscribed topics that exist."""
        places = self._logs.places(topics)
        found = self._commits.find(group_id, [(begin, end) for _, begin, end in places])
        columns = {name: values[found] for name, values in self._joined.items()}
        return PartitionFacts(
            topic=[name for name, begin, end in places for _ in range(begin, end)],
            topics=self._topics_at(places),
            unanswered=columns.pop("unanswered").tolist(),
            **columns,
        )

    def _topics_at(self, places: Sequence[tuple[str, int, int]]) -> Topics:
        """The topics at these places; many groups read the same ones."""
        names = tuple(name for name, _, _ in places)
        if names not in self._topics:
            counts = np.array([end - begin for _, begin, end in places], np.int64)
            self._topics[names] = Topics(names=names, counts=counts)
        return self._topics[names]


def _joined(logs: "_Logs", commits: "_Commits") -> dict[str, Any]:
    """The arrays of `PartitionFacts`: an entry for each commit, then one for each log without a commit."""
    n, row = len(logs.key), np.append(commits.row, np.arange(len(logs.key)))
    observed_ms, commit_ms = logs.observed_at_ms[row], _appended(commits.commit_ms, n, UNKNOWN)
    is_dated = (observed_ms != UNKNOWN) & (commit_ms != UNKNOWN)
    whole = PartitionFacts(
        topic=[],
        partition=logs.key[row] % _NUMBERS,
        committed=_appended(commits.committed, n, UNKNOWN),
        log_start=logs.log_start[row],
        log_end=logs.log_end[row],
        observed_at_ms=observed_ms,
        arrival_rate=logs.arrival_rate[row],
        drain_rate=_appended(commits.drain_rate, n, np.nan),
        lag_age_s=_appended(commits.lag_age_s, n, np.nan),
        lag_at_commit=_appended(commits.lag_at_commit, n, UNKNOWN),
        commit_age_s=np.where(is_dated, np.maximum(observed_ms - commit_ms, 0) / 1000, np.nan),
        commit_interval_s=_appended(commits.commit_interval_s, n, np.nan),
        commit_rate=_appended(commits.commit_rate, n, np.nan),
        commit_span_s=_appended(commits.commit_span_s, n, np.nan),
        least_lag=_appended(commits.least_lag, n, UNKNOWN),
        incomparable=_appended(commits.incomparable, n, False),
        commit_ahead_s=np.where(is_dated, np.maximum(commit_ms - observed_ms, 0) / 1000, 0.0),
    )
    whole = up_to_readable(whole, logs.readable[row], logs.last_stable[row])
    names = (name for name in PartitionFacts.__slots__ if name not in {"topic", "topics"})
    return {name: getattr(whole, name) for name in names} | {"unanswered": logs.error[row]}


def _appended(values: npt.NDArray[_Value], n: int, unknown: float) -> npt.NDArray[_Value]:
    return np.append(values, np.full(n, unknown, values.dtype))


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

    def rows(self, lags: pa.Table) -> Int64s:
        """Where the log of each of these rows is, -1 where it does not exist."""
        key = _codes(lags["topic"], self._codes) * _NUMBERS + int64s(_array(lags["partition"]))
        at = np.searchsorted(self.key, key)
        # For those after the last one: no key is -1.
        return np.where(np.append(self.key, -1)[at] == key, at, -1)

    def places(self, topics: Iterable[str]) -> list[tuple[str, int, int]]:
        """For each of these topics that exists, its name, and where its partitions begin and end; ascending."""
        known = sorted((*self._places[name], name) for name in set(topics) if name in self._places)
        return [(name, begin, end) for begin, end, name in known]


class _Commits:
    """Rows of `partition_lag` whose partition exists, sorted by group and then as the logs are."""

    def __init__(self, lags: pa.Table, logs: _Logs) -> None:
        row = logs.rows(lags)
        exists = row >= 0
        rows, row = lags.filter(pa.array(exists)).combine_chunks(), row[exists]
        names = pc.unique(rows["group_id"]).to_pylist()
        group = _codes(rows["group_id"], {name: code for code, name in enumerate(names)})
        order = np.lexsort((row, group))
        self.row: Int64s = row[order]
        """Where the log of each is."""
        ends = np.searchsorted(group[order], np.arange(len(names) + 1))
        self._places = dict(zip(names, pairwise(ends.tolist()), strict=True))
        committed = int64s(_array(rows["committed_offset"]))
        # A commit whose lag cannot be told was made in another topic of that name, or is beyond the log end.
        incomparable = (committed != UNKNOWN) & pc.is_null(_array(rows["lag"])).to_numpy(zero_copy_only=False)
        self.committed = committed[order]
        self.incomparable = incomparable[order]
        self.commit_ms = millis(_array(rows["commit_timestamp"]))[order]
        self.lag_at_commit = int64s(_array(rows["lag_at_commit"]))[order]
        self.least_lag = int64s(_array(rows["least_lag_at_commit"]))[order]
        rates = ("drain_rate", "lag_seconds", "commit_interval_seconds", "commit_rate", "commit_span_seconds")
        self.drain_rate, self.lag_age_s, self.commit_interval_s, self.commit_rate, self.commit_span_s = (
            floats(_array(rows[name]))[order] for name in rates
        )

    def find(self, group_id: str, spans: Iterable[tuple[int, int]]) -> Int64s | slice:
        """Where the group's partitions are in `_joined`.

        Args:
            group_id: Whose.
            spans: Begin and end of its logs.
        """
        logs = np.concatenate([np.zeros(0, np.int64), *(np.arange(begin, end) for begin, end in spans)])
        begin, end = self._places.get(group_id, (0, 0))
        own = self.row[begin:end]
        if np.array_equal(own, logs):
            return slice(begin, end)
        at = np.searchsorted(own, logs)
        known = own[np.minimum(at, len(own) - 1)] == logs if len(own) else np.zeros(len(logs), np.bool_)
        found: Int64s = np.where(known, begin + at, len(self.row) + logs)
        return found


def _codes(names: pa.ChunkedArray, codes: dict[str, int]) -> Int64s:
    """The code of each name, -1 where it has none."""
    encoded = _array(names).dictionary_encode()
    known = np.array([*(codes.get(name, -1) for name in encoded.dictionary.to_pylist()), -1], np.int64)
    return known[int64s(encoded.indices)] if len(encoded) else np.zeros(0, np.int64)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
