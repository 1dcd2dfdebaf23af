"""Builders for the measures: integers with None for unknown, rings and commit windows from plain lists."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Int64s
from pipeline.lag import samples
from pipeline.lag.commits import window as commit_window
from pipeline.lag.commits.window import CommitWindow
from pipeline.lag.lag import UNKNOWN
from pipeline.lag.samples import Samples

Sample = tuple[int, int]
Commit = tuple[int, int, int | None]


def ints(values: Iterable[int | None]) -> Int64s:
    return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int64)


def plain(values: Int64s) -> list[int | None]:
    return [None if value == UNKNOWN else int(value) for value in values]


def rings(*rows: Sequence[Sample]) -> Samples:
    lists = [[{"observed_at_ms": at, "log_end_offset": end} for at, end in row] for row in rows]
    return samples.from_arrow(pa.array(lists, type=samples.SAMPLES_TYPE))


def ring_rows(ring: Samples) -> list[list[Sample]]:
    lists = samples.to_arrow(ring).to_pylist()
    return [[(entry["observed_at_ms"], entry["log_end_offset"]) for entry in row] for row in lists]


def windows(*rows: Sequence[Commit]) -> CommitWindow:
    lists = [
        [{"committed_offset": offset, "commit_timestamp_ms": at, "lag": lag} for offset, at, lag in row]
        for row in rows
    ]
    return commit_window.from_arrow(pa.array(lists, type=commit_window.WINDOW_TYPE))


def window_rows(window: CommitWindow) -> list[list[Commit]]:
    lists = commit_window.to_arrow(window).to_pylist()
    return [
        [(entry["committed_offset"], entry["commit_timestamp_ms"], entry["lag"]) for entry in row]
        for row in lists
    ]


def no_samples(partitions: int) -> Samples:
    """Rings without a sample."""
    return samples.from_arrow(pa.nulls(partitions, samples.SAMPLES_TYPE))


def no_commits(partitions: int) -> CommitWindow:
    """Windows without a commit."""
    return commit_window.from_arrow(pa.nulls(partitions, commit_window.WINDOW_TYPE))


def after(*observations: tuple[int | None, int | None], ring: Samples | None = None) -> Samples:
    """One ring after these observations, one by one."""
    current = no_samples(1) if ring is None else ring
    for observed_at_ms, log_end in observations:
        current = samples.append(current, ints([observed_at_ms]), ints([log_end]))
    return current
