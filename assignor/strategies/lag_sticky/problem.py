"""The problem that `lag-sticky` solves: a start, what leaving it costs, and how plans are compared."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.cost import Price
from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Terms

_SAME = 1e-3
"""Times that differ by less than this share are the same: rates are not known any better."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """An assignment as what differs from the start, and what it comes to."""

    pid: Int64s
    """Partitions that are not where they start, ascending."""
    to: Int32s
    """Where they go."""
    moves: int
    """Partitions that leave a member which may keep them."""
    lag: Floats
    """Records of each of N members."""
    rate: Floats
    """Records per second of each member."""
    late_s: float
    """When the slowest member is through, as `Price.late_s`."""
    pressures: Floats
    """`Price.pressure_s` of the members, falling, 0 up to the floor."""
    area: float
    """Lag area of the group, record-seconds."""

    def changes(self) -> dict[int, int]:
        """Member of each partition that is not where it starts."""
        return dict(zip(self.pid.tolist(), self.to.tolist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A group, where its partitions start, and the terms.

    Arrays by partition have one entry more than there are partitions, a partition without lag and arrivals,
    so that -1 can stand for no partition.
    """

    group: Group
    terms: Terms
    price: Price
    capacity: Floats
    lag: Floats
    rate: Floats
    home: Int32s
    """The member that it costs a move to leave; -1 where any move is free."""
    start: Int32s
    """Member of each partition before anything moves; -1 where nobody reads it."""
    start_lag: Floats
    """Lag of each member at the start."""
    start_rate: Floats
    """Arrival rate of each member at the start."""
    start_count: Int64s
    """Partitions of each member at the start."""
    cap: int
    """Most partitions of a member."""
    may_read: Bools | None
    """Subscriber sets x members; None when everybody may read everything."""
    set_of: Int32s
    """Subscriber set of each partition."""

    @property
    def n_members(self) -> int:
        """N."""
        return self.group.n_members

    def member(self, plan: Plan) -> Int32s:
        """Member of each partition."""
        member: Int32s = self.start[:-1].copy()
        member[plan.pid] = plan.to
        return member

    def plan(self, changes: Mapping[int, int]) -> Plan:
        """The plan that puts these partitions on these members and leaves the others."""
        pid = np.fromiter(changes.keys(), np.int64, len(changes))
        to = np.fromiter(changes.values(), np.int32, len(changes))
        order = np.argsort(pid)
        return self._priced(pid[order], to[order])

    def plan_of(self, member: Int32s) -> Plan:
        """The plan that gives the partitions to these members."""
        pid = np.nonzero(member != self.start[:-1])[0]
        return self._priced(pid, member[pid])

    def counts(self, plan: Plan) -> Int64s:
        """Partitions of each member."""
        n = self.n_members
        gone = np.bincount(self.start[plan.pid], minlength=n)
        return self.start_count - gone + np.bincount(plan.to, minlength=n)

    def standstill_area(self, plan: Plan) -> float:
        """Lag area of the group if nothing had been read for `floor_s`, record-seconds."""
        lag = plan.lag + plan.rate * self.terms.floor_s
        return float(self.price.record_s(lag, plan.rate, self.capacity).sum())

    def pause_cost(self, pid: Int64s) -> Floats:
        """Record-seconds that pile up while each partition is on its way."""
        pause_s = self.terms.move_pause_s
        return (self.lag[pid] + self.rate[pid] * pause_s) * pause_s

    def _priced(self, pid: Int64s, to: Int32s) -> Plan:
        changed = self.start[pid] != to
        pid, to = pid[changed], to[changed]
        origin, n = self.start[pid], self.n_members
        lag = self.start_lag + summed(self.lag[pid], by=to, n=n) - summed(self.lag[pid], by=origin, n=n)
        rate = self.start_rate + summed(self.rate[pid], by=to, n=n) - summed(self.rate[pid], by=origin, n=n)
        # What is left of sums that cancel is no load.
        lag, rate = np.maximum(lag, 0.0), np.maximum(rate, 0.0)
        late = self.price.late_s(lag, rate, self.capacity)
        pressures = self.price.pressure_s(lag, rate, self.capacity)
        home = self.home[pid]
        return Plan(
            pid=pid,
            to=to,
            moves=int(((home >= 0) & (home != to)).sum()),
            lag=lag,
            rate=rate,
            late_s=float(late.max(initial=0.0)),
            pressures=-np.sort(-np.where(pressures > self.terms.floor_s, pressures, 0.0)),
            area=float(self.price.record_s(lag, rate, self.capacity).sum()),
        )

    def is_better(self, new: Plan, old: Plan) -> bool:
        """Is `new` the plan to take.

        The slowest members are compared first, then the next slowest, until one pair differs; there `new`
        must be sooner by the price of the moves it has more. If none differs, the smaller lag area decides,
        then the fewer moves.
        """
        apart = np.abs(new.pressures - old.pressures) > _SAME * np.maximum(new.pressures, old.pressures)
        if apart.any():
            k = int(apart.argmax())
            price_s = self.terms.move_cost_s * (new.moves - old.moves)
            return bool(new.pressures[k] + price_s < old.pressures[k])
        if abs(new.area - old.area) > _SAME * max(new.area, old.area):
            return new.area < old.area
        return new.moves < old.moves
