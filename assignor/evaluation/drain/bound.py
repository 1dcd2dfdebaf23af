"""A drain time that no assignment can beat, to judge an assignment without knowing the best one."""

import enum
import math
from dataclasses import dataclass, field

import numpy as np

from assignor.evaluation.drain.exact import FixedOnMembers, SmallProblem, soonest
from assignor.evaluation.drain.shares import shares_bound
from assignor.evaluation.drain.time import times_s, undrained
from assignor.evaluation.drain.work import FixedLoad, Work
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.group import Group

# A comparison of sums decides against a bound only beyond what rounding can do.
_ROUNDING = 1 + 1e-11
_PRECISION = 1e-11
_CLEARLY_MORE = 1 + 1e-7
_SAME = 1e-9
# Thirty million years; what is impossible for longer counts as never.
_NEVER_S = 1e15
_MOST_ROUNDS = 4
_MOST_NUMBERS = 24
# Product of numbers, items and speeds up to which one array expression is faster than a call for each number.
_AT_ONCE = 20_000
# A group so small is tried out, for at most 20 ms.
_SMALL_PARTITIONS = 12
_SMALL_MEMBERS = 6
_MOST_STEPS = 4_000


class BoundCause(enum.IntEnum):
    """Argument that gives a bound."""

    PARTITION = 0
    SHARES = 1
    BIN_PACKING = 2
    FIXED = 3
    ALL_TRIED = 4
    NOT_TAKEN = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LowerBound:
    """A lower bound on the drain time of every assignment, with its cause."""

    time_s: float
    """Seconds; `inf` if no assignment ever drains the group."""
    cause: BoundCause
    partition: int = -1
    """For PARTITION: the partition that takes this long by itself. For NOT_TAKEN: one that no member may own."""
    member: int = -1
    """For FIXED: the member that holds the fixed partitions."""
    sets: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """For SHARES: the subscriber sets whose members take this long together."""


def lower_bound_s(group: Group) -> float | None:
    """Return the lower bound in seconds; `inf` if no assignment ever drains the group, None if unknown."""
    bound = group_bound(group)
    return None if bound is None else bound.time_s


def group_bound(group: Group) -> LowerBound | None:
    """Return the bound of a group; None if capacities are unknown."""
    if group.capacity is None:
        return None
    return not_taken(group) or lower_bound(Work.of(group, group.capacity))


def not_taken(group: Group) -> LowerBound | None:
    """Return the bound of a group with work in a partition that no member may own, naming the first; otherwise None."""
    if not group.is_constrained():
        return None
    left = np.nonzero(undrained(group, group.owner) & ~group.placeable())[0]
    if len(left) == 0:
        return None
    return LowerBound(time_s=math.inf, cause=BoundCause.NOT_TAKEN, partition=int(left[0]))


def lower_bound(work: Work) -> LowerBound:
    """The largest of five bounds, each of which holds for every assignment of `work`.

    A member with capacity mu has drained a set of partitions by time T only if L + A*T <= mu*T, L and A the sums
    of lag and rate over the set; call w_p = L_p + a_p*T the weight of partition p at T.

    1. *One partition.* Partition p lies on one of its subscribers, the fastest of which drains mu_p:
       T >= L_p / (mu_p - a_p).
    2. *Shares.* Partitions of some subscriber sets lie on the members of these sets:
       T >= L / (mu - A), sums over those partitions and members. See `shares.shares_bound`.
    3. *Bin packing.* T is impossible if, with weights at T and n members that may hold anything:
       a. for some k <= n the k largest weights sum to more than T times the k largest capacities, since k
          partitions lie on at most k members; or
       b. for some j fewer than j of the j largest weights fit. A member that holds c of them holds at least
          the sum of the c smallest of them, so it holds at most c_m, the largest c for which that sum is
          <= mu_m*T; the j partitions have a place only if the c_m sum to j or more. (With equal capacities
          and j = n + 1: two of the n + 1 largest share a member.)
       What is impossible at T is impossible earlier, so the largest T found impossible is a bound, in whatever
       way it was found; and both arguments hold for any choice of partitions, so it is enough to look at the
       heaviest few.
    4. *What is fixed* on a member stays there: T >= L_0 / (mu_m - A_0), sums over the member's fixed partitions.
    5. *All tried.* In a group small enough every assignment that leaves what is fixed is tried, see `exact`: the bound
       is the soonest of them.

    Example: three partitions of 30 records on two members of 10 records/s. One partition takes 3 s, all shared
    evenly 4.5 s; but two of the three lie on one member, so nothing is sooner than 6 s.

    Source: the bounds of machine scheduling, as in Graham, Bounds on multiprocessing timing anomalies (1969), with
    weights that grow with T.
    """
    if len(work.partitions) == 0:
        return LowerBound(time_s=0.0, cause=BoundCause.SHARES, sets=np.zeros(0, np.bool_))
    # The two cheap bounds come first: the third only has to look above them, and often not at all.
    alone = times_s(work.lag, work.fastest() - work.rate)
    slowest = int(alone.argmax())
    shares_s, sets = shares_bound(work)
    bound = LowerBound(time_s=shares_s, cause=BoundCause.SHARES, sets=sets)
    if alone[slowest] > shares_s:
        bound = LowerBound(
            time_s=float(alone[slowest]), cause=BoundCause.PARTITION, partition=int(work.partitions[slowest])
        )
    if work.fixed is not None:
        fixed_s = times_s(work.fixed.lag, work.capacity - work.fixed.rate)
        member = int(fixed_s.argmax())
        if fixed_s[member] > bound.time_s:
            bound = LowerBound(time_s=float(fixed_s[member]), cause=BoundCause.FIXED, member=member)
    if not np.isfinite(bound.time_s):
        return bound
    packing_s = _bin_packing_bound(work, bound.time_s)
    if packing_s > bound.time_s:
        bound = LowerBound(time_s=packing_s, cause=BoundCause.BIN_PACKING)
    soonest_s = _soonest_of_all(work, bound.time_s)
    return LowerBound(time_s=soonest_s, cause=BoundCause.ALL_TRIED) if soonest_s > bound.time_s else bound


def _soonest_of_all(work: Work, known_s: float) -> float:
    """Time of the soonest assignment of a small group; `known_s` if it is no later or not all could be tried."""
    loose = work.loose()
    few = len(loose.partitions) <= _SMALL_PARTITIONS and len(loose.taking_part()) <= _SMALL_MEMBERS
    if not few or not math.isfinite(known_s):
        return known_s
    problem = SmallProblem(
        lag=loose.lag.tolist(),
        rate=loose.rate.tolist(),
        may_read=[loose.subscriptions.set_members(s).tolist() for s in loose.set_of.tolist()],
        owner=[-1] * len(loose.partitions),
        capacity=work.capacity.tolist(),
        most_held=len(loose.partitions),
        fixed=None if work.fixed is None else _fixed_on_members(work.fixed),
    )
    answer = soonest(problem, known_s=math.inf, most_moves=0, enough_s=known_s, most_steps=_MOST_STEPS)
    is_later = answer.is_complete and answer.cost_s > known_s * _CLEARLY_MORE
    # The search tells assignments apart beyond rounding only.
    return answer.cost_s * (1 - _SAME) if is_later else known_s


def _fixed_on_members(fixed: FixedLoad) -> FixedOnMembers:
    # The count of partitions is limited by nothing here.
    return FixedOnMembers(lag=fixed.lag.tolist(), rate=fixed.rate.tolist(), count=[0] * len(fixed.lag))


def _bin_packing_bound(work: Work, known_s: float) -> float:
    """A time above `known_s` that the bin-packing argument excludes; `known_s` if it excludes none."""
    instance = _PackingInstance.of(work, known_s)
    # The least time checked is one that a result must exceed to be worth reporting as another cause.
    low_s = max(known_s, 1e-6) * _CLEARLY_MORE
    if not instance.impossible(low_s):
        return known_s
    high_s = low_s * 2
    # Doubling brackets a bound that is far above the known one in a logarithmic number of checks.
    while instance.impossible(high_s):
        if high_s > _NEVER_S:
            return float(np.inf)
        low_s, high_s = high_s, high_s * 2
    # Bisection: impossible at a time means impossible earlier. The lower end is proved impossible, so it is the bound.
    while high_s - low_s > _PRECISION * high_s:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (middle_s, high_s) if instance.impossible(middle_s) else (low_s, middle_s)
    return low_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PackingInstance:
    """The heaviest partitions as items, and the members as bins that grow with time."""

    lag: Floats
    rate: Floats
    capacity_sums: Floats
    """Capacity of the k fastest members, k = 1 .. n."""
    speeds: Floats
    """The distinct capacities."""
    speed_counts: Int64s
    """How many members have each."""
    numbers: list[int]
    """The values of j in argument 3b that are tried."""
    prefixes: Int64s | None
    """For each of these numbers j, the indices of the j heaviest items, the lightest first, then of one that fits
    nowhere; None if that is too much for one expression."""

    @classmethod
    def of(cls, work: Work, time_s: float) -> "_PackingInstance":
        # Members of one capacity hold equally many partitions, so each capacity is looked up once.
        fastest = work.taking_part()
        speeds, speed_counts = np.unique(fastest, return_counts=True)
        heavy = _heaviest(work, time_s, n=_MOST_ROUNDS * len(fastest) + 1)
        numbers = _numbers(len(fastest), len(heavy), is_one_speed=len(speeds) == 1)
        is_small = len(numbers) * len(heavy) * len(speeds) <= _AT_ONCE
        return cls(
            lag=work.lag[heavy],
            rate=work.rate[heavy],
            capacity_sums=np.cumsum(fastest),
            speeds=speeds,
            speed_counts=speed_counts,
            numbers=numbers,
            prefixes=_prefixes(numbers, len(heavy)) if is_small else None,
        )

    def impossible(self, time_s: float) -> bool:
        """Does the bin-packing argument exclude that everything is drained by `time_s`."""
        weight = -np.sort(-(self.lag + self.rate * time_s))
        # 3a for all k at once.
        first = np.cumsum(weight[: len(self.capacity_sums)])
        if (first > self.capacity_sums[: len(first)] * time_s * _ROUNDING).any():
            return True
        bins = self.speeds * time_s * _ROUNDING
        if self.prefixes is None:
            return any(self._too_many(weight[:j], bins) for j in self.numbers)
        # The bisection calls this dozens of times with few items; one expression takes as long as one number would.
        sums = np.append(weight, np.inf)[self.prefixes].cumsum(axis=1)
        fit = (sums[:, :, None] <= bins).sum(axis=1)
        return bool(((fit * self.speed_counts).sum(axis=1) < self.numbers).any())

    def _too_many(self, weight: Floats, bins: Floats) -> bool:
        # The lightest first: that is the most that fit on a member.
        fit = np.searchsorted(np.cumsum(weight[::-1]), bins, side="right")
        return int((fit * self.speed_counts).sum()) < len(weight)


def _numbers(n: int, most: int, *, is_one_speed: bool) -> list[int]:
    if is_one_speed:  # k per member and one more; the values between give weaker bounds
        return list(range(n + 1, most + 1, n))
    return sorted(set(np.linspace(n + 1, most, _MOST_NUMBERS).astype(int).tolist())) if most > n else []


def _prefixes(numbers: list[int], most: int) -> Int64s:
    last = np.array(numbers, np.int64)[:, None] - 1
    items = last - np.arange(most)
    return np.where(items >= 0, items, most)


def _heaviest(work: Work, time_s: float, *, n: int) -> Int64s:
    """The union of the n partitions of largest lag, of largest rate, and of largest weight near the bound."""
    if n >= len(work.partitions):
        return np.arange(len(work.partitions))
    measures = [work.lag]
    if work.rate.any():
        measures += [work.rate, work.lag + work.rate * time_s]
    first = len(work.partitions) - n
    return np.unique(np.concatenate([np.argpartition(measure, first)[first:] for measure in measures]))
