"""What each member does now, and what its commits show of its speed.

A member shows its speed between two of its commits if it had something to read all the time, and did read. One that
reads nothing at all, though there is something to read, stands still: that is a pause, a restart, a dependency that is
away, and no speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import due_s, waited_s

BACKLOG_S = 10.0
"""Lag at a commit of more seconds of draining is a backlog. Less is what one poll brings, and what clocks differ."""
_STEADY = 0.1
"""A member that drains what arrives, give or take this share, may read in large batches and be one of them behind."""
_BATCHES = 2.0
"""How far behind such a member may be at a commit, times what is usual for it; a commit interval at most."""
_SAME_COMMIT_MS = 1_000
_MOSTLY = 0.9
"""Share of what a member drains that must be drained under the conditions of evidence."""
_LONGEST_SPAN_S = 60.0
_INTERVALS = 2.0
"""A span longer than this many usual intervals, and than a minute, has a gap in it: some of it was no reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one member does now."""

    rate: float
    """Records/s that it drains, a moving average."""
    lag: float
    """Backlog in records of what it holds (`backlog.backlog`)."""
    is_settled: bool = True
    """The group was not rebalanced lately, and no plan has taken anything from it. Moving averages are kept by
    partition: at first they show how fast somebody else read what it has now."""
    shows: float | None = None
    """Records/s that it drained between its commits with a backlog all the time; None when that is not known."""
    shows_at_ms: int = 0
    """When the newest of these commits was made."""
    stands_still: bool = False
    """It has something to read and reads nothing."""
    committed_ms: int = 0
    """Its newest commit, by the coordinator's clock; 0 without one."""
    level_s: float = float("nan")
    """How far behind it was at its newest commits, seconds of arrivals; nan where unknown."""
    given_ms: int = 0
    """See `Before.given_ms`."""
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """What it holds: topic -> partition numbers."""

    @property
    def is_backlogged(self) -> bool:
        """Whether it drains and does not keep up.

        One that never drained anything (rate 0) may be stuck, but so looks one that has only just started, and as slow
        as it looks everything would go to whoever commits first.
        """
        return self.rate > 0 and self.lag > BACKLOG_S * self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What is known of one member from before."""

    changed_ms: int
    """When it has got other partitions last."""
    given_ms: int = 0
    """The same, or a later time when a plan that is being judged gave it some."""
    is_settled: bool
    """See `Load.is_settled`."""
    calm_s: float
    """How far behind it usually is at its commits, seconds of arrivals; nan for a new one."""
    committed_ms: int
    """Its newest commit that the decision before saw, by the coordinator's clock; 0 for none."""
    held: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """See `Load.held`."""


def member_loads(
    partitions: PartitionFacts,
    held: Sequence[Int64s],
    lag: Int64s,
    backlog: Int64s,
    before: Sequence[Before],
    *,
    now_ms: int,
) -> list[Load]:
    """What each member does now, in the order of `held`; members may be those of several groups.

    Args:
        partitions: See `facts`.
        held: Indices of each member's partitions.
        lag: P entries, records.
        backlog: See `backlog.backlog`.
        before: Of each member.
        now_ms: Time of the decision.
    """
    sizes = [len(own) for own in held]
    own = np.concatenate([np.zeros(0, np.int64), *held])
    member = np.repeat(np.arange(len(held)), sizes)
    sums = _Sums(member, len(held))
    drained = np.fmax(partitions.drain_rate, 0.0)[own]
    shown, shown_at_ms = _shown(partitions, own, member, before, sums, now_ms=now_ms)
    newest_ms = _newest_commit_ms(partitions, own, sums)
    # Times went through seconds.
    is_same = (newest_ms > 0) & (
        np.abs(newest_ms - np.array([one.committed_ms for one in before], np.int64)) < _SAME_COMMIT_MS
    )
    still = _stands_still(partitions, own, lag, sums, is_same)
    return [
        Load(
            rate=rate,
            lag=records,
            is_settled=one.is_settled,
            shows=None if is_still or not np.isfinite(shows) else shows,
            shows_at_ms=at_ms,
            stands_still=is_still,
            level_s=level_s,
            committed_ms=commit_ms,
            given_ms=one.given_ms,
            held=one.held,
        )
        for rate, records, one, shows, at_ms, is_still, level_s, commit_ms in zip(
            sums.of(drained).tolist(),
            sums.of(backlog[own]).tolist(),
            before,
            shown.tolist(),
            shown_at_ms.tolist(),
            still.tolist(),
            _level_s(partitions, own, sums).tolist(),
            newest_ms.tolist(),
            strict=True,
        )
    ]


class _Sums:
    """Sums and extremes by member, of values in the order of members."""

    def __init__(self, member: Int64s, members: int) -> None:
        self._member, self._members = member, members
        counts = np.bincount(member, minlength=members)
        self._starts = np.array([0, *accumulate(counts.tolist())][:-1], np.int64)
        self._has_any = counts > 0

    def of(self, values: Floats | Int64s) -> Floats:
        """Sum of each member."""
        return np.bincount(self._member, weights=values, minlength=self._members).astype(np.float64)

    def largest(self, values: Floats) -> Floats:
        """Largest value of each member that is not nan; nan without one."""
        if self._has_any.all():
            return np.fmax.reduceat(values, self._starts)
        found = np.full(self._members, np.nan)
        if self._has_any.any():
            found[self._has_any] = np.fmax.reduceat(values, self._starts[self._has_any])
        return found


def _shown(
    partitions: PartitionFacts,
    own: Int64s,
    member: Int64s,
    before: Sequence[Before],
    sums: _Sums,
    *,
    now_ms: int,
) -> tuple[Floats, Int64s]:
    """Records/s that each member drains under the conditions of evidence, nan for none; time of its newest commit."""
    rate, span_s = partitions.commit_rate[own], partitions.commit_span_s[own]
    age_s, interval_s = partitions.commit_age_s[own], partitions.commit_interval_s[own]
    least = partitions.least_lag[own]
    began_ms = now_ms - (np.fmax(age_s, 0.0) + np.fmax(span_s, 0.0)) * 1000
    counts: Bools = (
        ~np.isnan(rate)
        & (least != UNKNOWN)
        & (began_ms >= np.array([one.changed_ms for one in before], np.float64)[member])
        & (age_s <= due_s(partitions)[own])
        & (span_s <= np.fmax(_INTERVALS * interval_s, _LONGEST_SPAN_S))
    )
    drained, backlog = sums.of(np.where(counts, rate, 0.0)), sums.of(np.where(counts, least, 0))
    is_behind = (drained > 0) & (backlog > BACKLOG_S * drained)
    if not is_behind.any():
        # Most groups, most of the time. There are thousands, and what follows is as much again.
        return np.full(len(before), np.nan), np.zeros(len(before), np.int64)
    arriving, known = np.fmax(partitions.arrival_rate[own], 0.0), sums.of(np.fmax(rate, 0.0))
    arrives, unseen = sums.of(arriving), sums.of(np.where(np.isnan(rate), arriving, 0.0))
    longest_s = np.fmax(sums.largest(np.where(counts, interval_s, np.nan)), 0.0)
    is_steady = np.abs(drained - arrives) <= _STEADY * np.maximum(drained, arrives)
    batch_s = np.fmin(longest_s, _BATCHES * np.array([one.calm_s for one in before], np.float64))
    deep_s = np.where(is_steady, BACKLOG_S + batch_s, BACKLOG_S)
    is_evidence = (
        is_behind
        & (drained >= _MOSTLY * known)
        & (unseen <= (1 - _MOSTLY) * np.maximum(arrives, drained))
        & (backlog > deep_s * drained)
    )
    newest_s = -np.fmin(sums.largest(-np.where(counts, age_s, np.nan)), 0.0)
    return np.where(is_evidence, drained, np.nan), (now_ms - newest_s * 1000).astype(np.int64)


def _newest_commit_ms(partitions: PartitionFacts, own: Int64s, sums: _Sums) -> Int64s:
    """N entries: see `Load.committed_ms`."""
    at_ms = partitions.newest_commit_ms[own]
    return np.rint(np.fmax(sums.largest(at_ms), 0.0)).astype(np.int64)


def _stands_still(partitions: PartitionFacts, own: Int64s, lag: Int64s, sums: _Sums, is_same: Bools) -> Bools:
    """N entries: has the member something to read, and no progress for longer than its commits explain.

    An old commit alone is none: the coordinator's clock may be behind. So there must be no newer one (`is_same`) than
    the decision before saw.
    """
    rate = partitions.commit_rate[own]
    is_idle: Bools = (sums.of(np.fmax(rate, 0.0)) == 0) & (sums.of(~np.isnan(rate)) > 0)
    if not (is_same | is_idle).any():
        return is_idle
    age_s, due = partitions.commit_age_s[own], due_s(partitions)[own]
    arrives = np.fmax(partitions.arrival_rate[own], 0.0) * due >= 1
    # A transaction's marker leaves a lag of 1 that nobody can read.
    unread = (lag[own] > 1) | ((lag[own] > 0) & arrives)
    newest_s = -sums.largest(-age_s)
    allowed_s = sums.largest(np.where(unread, due, np.nan))
    longest_s = sums.largest(np.where(unread, waited_s(partitions)[own], np.nan))
    is_late = is_same & (newest_s > allowed_s) & (longest_s > allowed_s)
    least = partitions.least_lag[own]
    left_over = sums.of(np.where(unread & (least != UNKNOWN), least, 0)) > 0
    still: Bools = is_late | (is_idle & left_over)
    return still


def _level_s(partitions: PartitionFacts, own: Int64s, sums: _Sums) -> Floats:
    """N entries: lag at the newest commits over arrivals; nan where one is unknown, and without arrivals."""
    arrives = sums.of(np.fmax(partitions.arrival_rate[own], 0.0))
    lag = partitions.lag_at_commit[own]
    behind, unknown = sums.of(np.where(lag == UNKNOWN, 0, lag)), sums.of(lag == UNKNOWN)
    level_s: Floats = np.divide(
        behind, arrives, out=np.full(len(behind), np.nan), where=(arrives > 0) & (unknown == 0)
    )
    return level_s
