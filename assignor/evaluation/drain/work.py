"""The work of a group and its capacity: all that drain times and their bounds depend on."""

from dataclasses import dataclass, replace

import numpy as np

from assignor.evaluation.drain.time import summed
from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.group import Group
from assignor.model.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedLoad:
    """Load fixed on each of N members, and the load that is not fixed."""

    lag: Floats
    rate: Floats
    loose: Bools
    """W entries: the partitions that are not fixed."""
    takers: Subscriptions
    """The subscriptions of those who take them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """The partitions that a member may have, W of them."""

    partitions: Int64s
    """The partition behind each entry of the arrays below, ascending."""
    lag: Floats
    """Records of lag of each."""
    rate: Floats
    """Records per second that arrive in each."""
    set_of: Int32s
    """Subscriber set of each."""
    subscriptions: Subscriptions
    capacity: Floats
    """Records per second of each of N members."""
    fixed: FixedLoad | None = None
    """The fixed part of the work; None if nothing is fixed."""

    @classmethod
    def of(cls, group: Group, capacity: Floats) -> "Work":
        """The work of `group`, its members having these capacities."""
        partitions = np.nonzero(group.placeable())[0]
        return cls(
            partitions=partitions,
            lag=group.lag[partitions].astype(np.float64),
            rate=group.rate[partitions],
            set_of=group.subscriptions.set_of_topic[group.topics.topic_of[partitions]],
            subscriptions=group.subscriptions,
            capacity=capacity,
            fixed=_fixed_load(group, partitions) if group.is_constrained() else None,
        )

    def as_of(self, horizon_s: float) -> "Work":
        """Return the same work with arrivals within the horizon counted as lag, and none after it."""
        # As in `cost`: beyond the horizon counts how long all work takes that has arrived by then.
        fixed = self.fixed
        if fixed is not None:
            arrived = fixed.lag + fixed.rate * horizon_s
            fixed = replace(fixed, lag=arrived, rate=np.zeros(len(fixed.rate)))
        arrived = self.lag + self.rate * horizon_s
        return replace(self, lag=arrived, rate=np.zeros(len(self.rate)), fixed=fixed)

    def loose(self) -> "Work":
        """The work that is not fixed."""
        if self.fixed is None:
            return self
        loose = self.fixed.loose
        return replace(
            self,
            partitions=self.partitions[loose],
            lag=self.lag[loose],
            rate=self.rate[loose],
            set_of=self.set_of[loose],
            subscriptions=self.fixed.takers,
            fixed=None,
        )

    def of_sets(self) -> tuple[Floats, Floats]:
        """Sum of lag and of rate over the partitions of each subscriber set."""
        n = self.subscriptions.n_sets
        return summed(self.lag, by=self.set_of, n=n), summed(self.rate, by=self.set_of, n=n)

    def set_of_entry(self) -> Int32s:
        """The subscriber set of each entry of `subscriptions.members`."""
        sets = self.subscriptions
        return np.repeat(np.arange(sets.n_sets, dtype=np.int32), sets.set_sizes())

    def fastest(self) -> Floats:
        """Capacity of the fastest member that may read each partition."""
        # By set, not by partition: there are far fewer sets.
        best = np.zeros(self.subscriptions.n_sets)
        np.maximum.at(best, self.set_of_entry(), self.capacity[self.subscriptions.members])
        return best[self.set_of]

    def readers(self) -> Bools:
        """N entries: may the member read any of the partitions."""
        used = np.zeros(self.subscriptions.n_sets, np.bool_)
        used[self.set_of] = True
        return self.subscriptions.in_any(used)

    def taking_part(self) -> Floats:
        """Capacities of the members that may read any of the partitions, falling."""
        return -np.sort(-self.capacity[self.readers()])


def _fixed_load(group: Group, partitions: Int64s) -> FixedLoad:
    fixed, n = group.is_fixed(), group.n_members
    owner = group.owner[fixed]
    return FixedLoad(
        lag=summed(group.lag[fixed], by=owner, n=n),
        rate=summed(group.rate[fixed], by=owner, n=n),
        loose=~fixed[partitions],
        takers=group.takers,
    )
