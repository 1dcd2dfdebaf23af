"""The drain time that no assignment can beat, so that a plan can be judged without knowing the best one."""

import enum
from dataclasses import dataclass, field

import numpy as np

from assignor.evaluation.drain.shares import shares_bound
from assignor.evaluation.drain.time import times_s
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.group import Group

# A comparison of sums decides against a bound only beyond what rounding can do.
_ROUNDING = 1 + 1e-11
_PRECISION = 1e-11
_CLEARLY_MORE = 1 + 1e-7
_NEVER_S = 1e15
_MOST_ROUNDS = 4
_MOST_NUMBERS = 24


class BoundCause(enum.IntEnum):
    """Which of the three arguments gives a bound."""

    PARTITION = 0
    SHARES = 1
    PIECES = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LowerBound:
    """A drain time below which there is no assignment, and why."""

    time_s: float
    """Seconds; `inf` when no assignment ever drains the group."""
    cause: BoundCause
    pid: int = -1
    """With PARTITION: the one that takes so long by itself."""
    sets: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """With SHARES: the subscriber sets whose members take so long together."""


def lower_bound_s(group: Group) -> float | None:
    """Seconds below which no assignment drains the group; `inf` when none ever does, None when unknown."""
    bound = group_bound(group)
    return None if bound is None else bound.time_s


def group_bound(group: Group) -> LowerBound | None:
    """The bound of a group; None when capacities are unknown."""
    return None if group.capacity is None else lower_bound(Work.of(group, group.capacity))


def lower_bound(work: Work) -> LowerBound:
    """The largest of three bounds, each of which holds for every assignment of `work`.

    A member with capacity mu is through with a set of partitions by time T only if L + A*T <= mu*T, L and A
    the sums of lag and rate over the set; call w_p = L_p + a_p*T the weight of partition p at T.

    1. *One partition.* Partition p lies on one of its subscribers, the fastest of which drains mu_p:
       T >= L_p / (mu_p - a_p).
    2. *Shares.* Partitions of some subscriber sets lie on the members of these sets:
       T >= L / (mu - A), sums over those partitions and members. See `shares.shares_bound`.
    3. *Pieces.* T is impossible if, with weights at T and n members that may hold anything:
       a. for some k <= n the k largest weights sum to more than T times the k largest capacities, since k
          partitions lie on at most k members; or
       b. for some j fewer than j of the j largest weights fit. A member that holds c of them holds at least
          the sum of the c smallest of them, so it holds at most c_m, the largest c for which that sum is
          <= mu_m*T; the j partitions have a place only if the c_m sum to j or more. (With equal capacities
          and j = n + 1: two of the n + 1 largest share a member.)
       What is impossible at T is impossible before, so the largest T found impossible is a bound, in whatever
       way it was found; and both arguments hold for any choice of partitions, so it is enough to look at the
       heaviest few.
    """
    if len(work.pid) == 0:
        return LowerBound(time_s=0.0, cause=BoundCause.SHARES, sets=np.zeros(0, np.bool_))
    alone = times_s(work.lag, work.fastest() - work.rate)
    slowest = int(alone.argmax())
    shares_s, sets = shares_bound(work)
    bound = LowerBound(time_s=shares_s, cause=BoundCause.SHARES, sets=sets)
    if alone[slowest] > shares_s:
        bound = LowerBound(
            time_s=float(alone[slowest]), cause=BoundCause.PARTITION, pid=int(work.pid[slowest])
        )
    if not np.isfinite(bound.time_s):
        return bound
    pieces_s = _pieces_bound(work, bound.time_s)
    return LowerBound(time_s=pieces_s, cause=BoundCause.PIECES) if pieces_s > bound.time_s else bound


def _pieces_bound(work: Work, known_s: float) -> float:
    """A time above `known_s` that the third argument shows impossible; `known_s` if it shows none."""
    pieces = _Pieces.of(work, known_s)
    low_s = max(known_s, 1e-6) * _CLEARLY_MORE
    if not pieces.impossible(low_s):
        return known_s
    high_s = low_s * 2
    while pieces.impossible(high_s):
        if high_s > _NEVER_S:
            return float(np.inf)
        low_s, high_s = high_s, high_s * 2
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (middle_s, high_s) if pieces.impossible(middle_s) else (low_s, middle_s)
    return low_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pieces:
    """The heaviest partitions, and the members to put them on."""

    lag: Floats
    rate: Floats
    capacity_sums: Floats
    """Of the k fastest members, k = 1 .. n."""
    speeds: Floats
    """The distinct capacities."""
    speed_counts: Int64s
    """How many members have each."""

    @classmethod
    def of(cls, work: Work, time_s: float) -> "_Pieces":
        fastest = work.taking_part()
        speeds, speed_counts = np.unique(fastest, return_counts=True)
        heavy = _heaviest(work, time_s, n=_MOST_ROUNDS * len(fastest) + 1)
        return cls(
            lag=work.lag[heavy],
            rate=work.rate[heavy],
            capacity_sums=np.cumsum(fastest),
            speeds=speeds,
            speed_counts=speed_counts,
        )

    def impossible(self, time_s: float) -> bool:
        """Does the third argument exclude that everything is drained by then."""
        weight = -np.sort(-(self.lag + self.rate * time_s))
        first = np.cumsum(weight[: len(self.capacity_sums)])
        if (first > self.capacity_sums[: len(first)] * time_s * _ROUNDING).any():
            return True
        room = self.speeds * time_s * _ROUNDING
        return any(self._too_many(weight[:j], room) for j in self._numbers())

    def _numbers(self) -> list[int]:
        """The j of 3b that are looked at."""
        n, most = len(self.capacity_sums), len(self.lag)
        if len(self.speeds) == 1:  # one more than k for each; more than that say less
            return list(range(n + 1, most + 1, n))
        return sorted(set(np.linspace(n + 1, most, _MOST_NUMBERS).astype(int).tolist())) if most > n else []

    def _too_many(self, weight: Floats, room: Floats) -> bool:
        fit = np.searchsorted(np.cumsum(weight[::-1]), room, side="right")
        return int((fit * self.speed_counts).sum()) < len(weight)


def _heaviest(work: Work, time_s: float, *, n: int) -> Int64s:
    """Those among the n of largest lag, of largest rate, or of largest weight at a time not far from the bound."""
    if n >= len(work.pid):
        return np.arange(len(work.pid))
    measures = [work.lag]
    if work.rate.any():
        measures += [work.rate, work.lag + work.rate * time_s]
    first = len(work.pid) - n
    return np.unique(np.concatenate([np.argpartition(measure, first)[first:] for measure in measures]))
