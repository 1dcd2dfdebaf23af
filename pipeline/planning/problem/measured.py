"""The group as its commits show it, in records; the problem that a strategy gets is in work."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.hopeless import hopeless
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.group import Group
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import due_s, waited_s

_UNSEEN = 0.1
"""Share of a member's arrivals that may come in partitions whose lag at the commit is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """The group as its commits show it, one entry for each partition."""

    group: Group
    arriving: Floats
    """Records/s."""
    backlog: Int64s
    """See `group.Problem`."""
    lag_at_commit: Floats
    """Records; nan where unknown."""
    committed_ms: Floats
    """When each partition was committed last; nan without a commit."""
    commit_rate: Floats
    """Records/s between its newest commits; nan where unknown."""
    is_late: Bools
    """There is something to read, and the next commit is later than the habit of the partition explains."""
    is_old: Bools
    """Its log offsets are old, so its backlog may be larger (`eligibility.old_offsets`)."""

    def lag_of(self, held: Bools) -> float | None:
        """Lag at the commits of these partitions, records; None where too much of it is unknown."""
        lag = self.lag_at_commit[held]
        unknown = np.isnan(lag)
        return None if len(lag) and unknown.all() else self._sum_known(lag, unknown, held)

    def drained_by(self, held: Bools) -> float | None:
        """Records/s that are committed of these partitions; None where too much of it is unknown."""
        rate = self.commit_rate[held]
        return self._sum_known(rate, np.isnan(rate), held)

    def _sum_known(self, values: Floats, unknown: Bools, held: Bools) -> float | None:
        # For most members all values are known, or none. This runs for each member, and `nansum` takes as long as ten
        # sums.
        if not unknown.any():
            return float(values.sum())
        rate = self.arriving[held]
        unseen = float(rate[unknown].sum())
        return float(np.nansum(values)) if unseen <= _UNSEEN * float(rate.sum()) else None

    def curable(self) -> Bools:
        """P entries: does some member drain the partition, as far as is known."""
        if self.group.capacity is None:
            return np.ones(self.group.n_partitions, np.bool_)
        can_be: Bools = ~hopeless(self.group, self.group.capacity)
        return can_be

    def curable_backlog(self) -> Int64s:
        """P entries, records: the backlog without that of partitions which no member drains."""
        return np.where(self.curable(), self.backlog, 0)

    def newest_ms(self, held: Bools) -> int:
        """Newest commit of these partitions; 0 without one."""
        times = self.committed_ms[held]
        return int(np.nanmax(times)) if not np.isnan(times).all() else 0


def measured(group: Group, partitions: PartitionFacts, backlog: Int64s, is_old: Bools) -> Measured:
    """The group as its commits show it."""
    known = partitions.lag_at_commit != UNKNOWN
    return Measured(
        group=group,
        arriving=np.fmax(partitions.arrival_rate, 0.0),
        backlog=backlog,
        lag_at_commit=np.where(known, partitions.lag_at_commit, np.nan),
        committed_ms=partitions.newest_commit_ms,
        commit_rate=partitions.commit_rate,
        is_late=waited_s(partitions) > due_s(partitions),
        is_old=is_old,
    )
