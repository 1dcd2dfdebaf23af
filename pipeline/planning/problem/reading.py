"""Collects what members that are behind read of each partition, and remembers the costs that it tells (`shares`).

A decision sees the newest commit of each partition and one before it. With the newest commit of the decision before it
sees two readings: from that commit to the earlier of the two, and from there to the newest. Nothing between them is
lost, and a cost is told in half the time.

A member that has been given a partition begins anew: what it read slowly with cold caches is no cost. One that has lost
some goes on. Where more than half of the members are behind, what slows them may be common to all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.load import BACKLOG_S, Load
from pipeline.planning.problem.shares import LEAST_READINGS, told
from pipeline.planning.readings import Readings
from pipeline.planning.state import MemberRate, partition_key

_KEPT = 40
"""Readings: of about 20 minutes at the defaults."""
_MOST_PARTITIONS = 32
"""Of a member: among more, one partition is too small a share to tell its cost."""
_MOST_MEMBERS = 8
"""Of a group with readings: its state, which each decision reads and writes, stays below about 100 kB."""
_BEHIND_S = 20.0
"""Seconds of reading that a member is behind in a partition that takes all that its speed leaves."""
_LEAST_SPAN_S = 20.0
_LONGEST_SPAN_S = 90.0
_SAME_S = 1.0
"""Times went through seconds."""
_TOLD_FOR_MS = 6 * 3_600_000
"""As long as what members have shown counts (`capacity`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reading:
    """One entry for each partition of a member."""

    rate: Floats
    """Records/s."""
    least_lag: Int64s

    @property
    def is_evidence(self) -> bool:
        """Whether the member was behind all the time."""
        drained = float(self.rate.sum())
        return bool((self.rate >= 0).all()) and float(self.least_lag.sum()) > BACKLOG_S * drained > 0


def with_readings(
    rates: Mapping[str, MemberRate],
    loads: Mapping[str, Load],
    held: Sequence[Int64s],
    partitions: PartitionFacts,
) -> dict[str, MemberRate]:
    """The rates of all, with the readings of this decision.

    Args:
        rates: `capacity.learned` of this decision.
        loads: Members of the group by identity, in the order of `held`.
        held: Indices of each member's partitions.
        partitions: See `facts`.
    """
    is_behind = [load.is_backlogged for load in loads.values()]
    few = sum(is_behind) <= min(_MOST_MEMBERS, max(1, len(loads) // 2))
    found = dict(rates)
    for (name, load), own, behind in zip(loads.items(), held, is_behind, strict=True):
        known = rates[name].readings
        if behind and few and 1 < len(own) <= _MOST_PARTITIONS:
            readings = _continued(known, own, partitions, shows=load.shows is not None)
            found[name] = replace(rates[name], readings=readings)
        elif known is not None and known.marks:
            found[name] = replace(rates[name], readings=replace(known, marks=()))
    return _bounded(found)


def _bounded(rates: dict[str, MemberRate]) -> dict[str, MemberRate]:
    """The rates with the readings of `_MOST_MEMBERS` at most; members at rest lose theirs first."""
    kept = {name: known for name, rate in rates.items() if (known := rate.readings) is not None}
    at_rest = [name for name, known in kept.items() if not known.marks]
    for name in at_rest[: max(0, len(kept) - _MOST_MEMBERS)]:
        rates[name] = replace(rates[name], readings=None)
    return rates


def costs_told(
    before: Mapping[str, tuple[float, int]], rates: Mapping[str, MemberRate], n_tests: int, *, now_ms: int
) -> dict[str, tuple[float, int]]:
    """Partition -> what a record of it costs, and when that was told last.

    Args:
        before: As the decision before left it.
        rates: Those of the present members, with the readings of this decision.
        n_tests: Partitions of the group.
        now_ms: Time of the decision.
    """
    found = {key: one for key, one in before.items() if now_ms - one[1] < _TOLD_FOR_MS}
    for rate in rates.values():
        readings = rate.readings
        if readings is None or not readings.marks or len(readings.rates) < LEAST_READINGS:
            continue
        answer = told(np.array(readings.rates), np.array(readings.behind, np.bool_), n_tests)
        if answer is not None:
            found[readings.of[answer[0]]] = (answer[1], now_ms)
    return found


def _continued(known: Readings | None, own: Int64s, partitions: PartitionFacts, *, shows: bool) -> Readings:
    """The readings with those of this decision."""
    keys = tuple(partition_key(partitions.topic[p], int(partitions.partition[p])) for p in own.tolist())
    if known is None or not set(keys) <= set(known.of):
        known = Readings(of=keys)
    rate, span_s, least = (
        partitions.commit_rate[own],
        partitions.commit_span_s[own],
        partitions.least_lag[own],
    )
    newest_ms = partitions.observed_at_ms[own] - partitions.commit_age_s[own] * 1000
    lag = partitions.lag_at_commit[own]
    if np.isnan(rate).any() or (least == UNKNOWN).any() or (lag == UNKNOWN).any():
        return replace(known, marks=())
    begun_ms, offset = newest_ms - span_s * 1000, partitions.committed[own] - rate * span_s
    goes_on = known.marks_of == keys and len(known.marks) > 0
    new = [_Reading(rate=rate, least_lag=least)] if goes_on or shows else []
    if goes_on:
        mark = np.array(known.marks, np.float64)
        gap_s = (begun_ms - mark[:, 1]) / 1000
        if (gap_s < -_SAME_S).any():
            # Some of it has been read already.
            return known
        if (gap_s >= _LEAST_SPAN_S).all() and (gap_s <= _LONGEST_SPAN_S).all():
            least_lag = np.minimum(least, mark[:, 2]).astype(np.int64)
            new = [_Reading(rate=(offset - mark[:, 0]) / gap_s, least_lag=least_lag), *new]
    place = {key: at for at, key in enumerate(known.of)}
    at = np.array([place[key] for key in keys], np.int64)
    for one in new:
        if one.is_evidence:
            known = _with_row(known, one, at)
    marks = np.column_stack([partitions.committed[own], np.rint(newest_ms).astype(np.int64), lag])
    return replace(known, marks=tuple(map(tuple, marks.tolist())), marks_of=keys)


def _with_row(known: Readings, one: _Reading, at: Int64s) -> Readings:
    rate, behind = np.zeros(len(known.of)), np.zeros(len(known.of), np.int64)
    is_behind: Bools = one.least_lag > _BEHIND_S * one.rate
    rate[at], behind[at] = np.round(one.rate, 2), is_behind
    return replace(
        known,
        rates=(*known.rates, tuple(rate.tolist()))[-_KEPT:],
        behind=(*known.behind, tuple(behind.tolist()))[-_KEPT:],
    )
