"""Collects what members that are behind read of each partition, and remembers the costs that it tells (`shares`).

A decision sees the newest commit of each partition and one before it. With the newest commit of the decision before it
sees two readings: from that commit to the earlier of the two, and from there to the newest. Nothing between them is
lost, and a cost is told in half the time.

Readings follow one another without a gap, of one member of the group: one that has caught up, has restarted, or has
been given a partition begins anew, since its speed may be another, and what it reads slowly with cold caches is no
cost. One that has lost some goes on. Where more than half of the members are behind, what slows them may be common to
all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.load import BACKLOG_S, Load
from pipeline.planning.problem.shares import LEAST_READINGS, told
from pipeline.planning.readings import Readings
from pipeline.planning.state import GroupState, MemberRate, partition_key

_KEPT = 40
"""Readings: of about 20 minutes at the defaults."""
_MOST_PARTITIONS = 32
"""Largest number of partitions of a member with readings: among more, the share of one is too small to show a cost."""
_MOST_MEMBERS = 8
"""Largest number of lagging members with readings: it keeps the state that each decision reads below about 100 kB."""
_BEHIND_S = 20.0
"""Seconds of reading that a member is behind in a partition that takes all that its speed leaves."""
_LEAST_SPAN_S = 20.0
_LONGEST_SPAN_S = 90.0
_SAME_S = 1.0
"""Tolerance for times that were converted to seconds and back."""
_TOLD_FOR_MS = 6 * 3_600_000
"""Half-life of the trust in a member's speed (`capacity`): an older cost may have changed as well."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reading:
    """One entry for each partition of a member."""

    rate: Floats
    """Records/s."""
    least_lag: Int64s

    @property
    def is_evidence(self) -> bool:
        """True if the member lagged throughout the reading."""
        drained = float(self.rate.sum())
        return bool((self.rate >= 0).all()) and float(self.least_lag.sum()) > BACKLOG_S * drained > 0


def with_readings(
    rates: Mapping[str, MemberRate],
    loads: Mapping[str, Load],
    held: Sequence[Int64s],
    partitions: PartitionFacts,
    members: Sequence[tuple[str, int]],
) -> dict[str, MemberRate]:
    """The rates of all; those of members that are behind with the readings of this decision, the others without any.

    Args:
        rates: `capacity.learned` of this decision.
        loads: Members of the group by identity, in the order of `held`.
        held: Indices of each member's partitions.
        partitions: See `facts`.
        members: Of each member its id, and when it has got other partitions last.
    """
    is_behind = [load.is_backlogged for load in loads.values()]
    few = sum(is_behind) <= min(_MOST_MEMBERS, len(loads) // 2)
    found = {name: replace(rate, readings=None) if rate.readings else rate for name, rate in rates.items()}
    for (name, load), own, behind, member in zip(loads.items(), held, is_behind, members, strict=True):
        if behind and few and 1 < len(own) <= _MOST_PARTITIONS:
            readings = _continued(rates[name].readings, own, partitions, member, shows=load.shows is not None)
            found[name] = replace(rates[name], readings=readings)
    return found


def costs_told(
    before: GroupState, rates: Mapping[str, MemberRate], n_tests: int, *, now_ms: int
) -> dict[str, tuple[float, int]]:
    """Partition -> what a record of it costs, and when that was told last.

    Args:
        before: As the decision before left it.
        rates: Those of the present members, with the readings of this decision.
        n_tests: Partitions of the group.
        now_ms: Time of the decision.
    """
    found = {key: one for key, one in before.costs.items() if 0 <= now_ms - one[1] < _TOLD_FOR_MS}
    for name, rate in rates.items():
        readings, known = rate.readings, before.rates.get(name)
        if readings is None or len(readings.rates) < LEAST_READINGS:
            continue
        if known is not None and known.readings is not None and known.readings.rates is readings.rates:
            # Nothing new has been read.
            continue
        answer = told(np.array(readings.rates), np.array(readings.behind, np.bool_), n_tests)
        if answer is not None:
            found[readings.of[answer[0]]] = (answer[1], now_ms)
    return found


def _continued(
    known: Readings | None, own: Int64s, partitions: PartitionFacts, member: tuple[str, int], *, shows: bool
) -> Readings | None:
    """The readings with those of this decision; None where it shows no reading."""
    keys = tuple(partition_key(partitions.topic[p], int(partitions.partition[p])) for p in own.tolist())
    member_id, changed_ms = member
    now = _Commits.of(partitions, own)
    if now is None:
        return None
    before = _marks(known, keys, member_id)
    if before is not None and now.overlaps(before):
        return known
    between = now.since(before) if before is not None else None
    if known is None or between is None:
        known, new = Readings(of=keys, member_id=member_id), [now.reading] if shows else []
    else:
        new = [*between, now.reading]
    if now.begun_ms.min() >= changed_ms:
        # Otherwise it read nothing for a while, as the group rebalanced.
        at = _places(keys, known.of)
        for one in filter(attrgetter("is_evidence"), new):
            known = _with_row(known, one, at)
    return replace(known, marks=now.marks(), marks_of=keys)


def _marks(known: Readings | None, keys: tuple[str, ...], member_id: str) -> Floats | None:
    """A row for each key; None where readings do not go on, since the member is another one or holds more."""
    if known is None or known.member_id != member_id or not set(keys) <= set(known.marks_of):
        return None
    return np.array(known.marks, np.float64)[_places(keys, known.marks_of)]


def _places(keys: tuple[str, ...], among: tuple[str, ...]) -> Int64s:
    """Index of each key in the other tuple."""
    place = {key: at for at, key in enumerate(among)}
    return np.array([place[key] for key in keys], np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Commits:
    """The newest commit of each partition of a member, and one before it."""

    reading: _Reading
    """From the one to the other."""
    newest_ms: Floats
    begun_ms: Floats
    committed: Int64s
    begun_at: Floats
    """Offset."""
    lag: Int64s
    log_start: Int64s

    @classmethod
    def of(cls, partitions: PartitionFacts, own: Int64s) -> "_Commits | None":
        """Those that a decision sees; None where it does not know them all."""
        rate, span_s = partitions.commit_rate[own], partitions.commit_span_s[own]
        least, lag = partitions.least_lag[own], partitions.lag_at_commit[own]
        if np.isnan(rate).any() or (least == UNKNOWN).any() or (lag == UNKNOWN).any():
            return None
        newest_ms = partitions.newest_commit_ms[own]
        committed = partitions.committed[own]
        return cls(
            reading=_Reading(rate=rate, least_lag=least),
            newest_ms=newest_ms,
            begun_ms=newest_ms - span_s * 1000,
            committed=committed,
            begun_at=committed - rate * span_s,
            lag=lag,
            log_start=partitions.log_start[own],
        )

    def overlaps(self, marks: Floats) -> bool:
        """Return True if this reading begins before the marks, so that a previous reading has counted part of it."""
        is_ahead = (marks[:, 1] > self.newest_ms + _SAME_S * 1000).any()
        return not is_ahead and bool((self.begun_ms < marks[:, 1] - _SAME_S * 1000).any())

    def since(self, marks: Floats) -> list[_Reading] | None:
        """The reading from the marks to where that of this decision begins, if it is long enough; None after a gap."""
        gap_s = (self.begun_ms - marks[:, 1]) / 1000
        if (gap_s < -_SAME_S).any() or (gap_s > _LONGEST_SPAN_S).any():
            return None
        if (marks[:, 0] < self.log_start).any():
            # Records have been deleted since, and the member may have skipped them.
            return None
        if (gap_s < _LEAST_SPAN_S).any():
            return []
        least_lag = np.minimum(self.reading.least_lag, marks[:, 2]).astype(np.int64)
        return [_Reading(rate=(self.begun_at - marks[:, 0]) / gap_s, least_lag=least_lag)]

    def marks(self) -> tuple[tuple[int, int, int], ...]:
        """See `Readings.marks`."""
        rows = np.column_stack([self.committed, np.rint(self.newest_ms).astype(np.int64), self.lag])
        return tuple(map(tuple, rows.tolist()))


def _with_row(known: Readings, one: _Reading, at: Int64s) -> Readings:
    rate, behind = np.zeros(len(known.of)), np.zeros(len(known.of), np.int64)
    is_behind: Bools = one.least_lag > _BEHIND_S * one.rate
    rate[at], behind[at] = np.round(one.rate, 2), is_behind
    return replace(
        known,
        rates=(*known.rates, tuple(rate.tolist()))[-_KEPT:],
        behind=(*known.behind, tuple(behind.tolist()))[-_KEPT:],
    )
