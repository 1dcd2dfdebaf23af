"""Bounds of the drain time of a group, with and without its slowest partitions."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem

NEAR = 1 + 1e-3
"""Times closer than this are the same."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchBounds:
    """Times that no assignment can beat, and the partitions behind them."""

    all_s: float
    """No assignment drains the group sooner."""
    rest_s: float
    """No assignment drains the rest sooner while each outlier has one of the fastest members to itself."""
    outliers_s: Floats
    """The time of each partition that takes longer than `rest_s` even with a member to itself, falling."""
    slowest: Int64s
    """The partitions that take longest with the fastest of their readers to themselves, the slowest first."""
    slowest_s: Floats
    """The time that each of them takes."""
    never: Int64s
    """Those of them that not even that member ever drains."""
    fixed_s: Floats | None = None
    """The time that each member takes for what is fixed on it; None when nothing is."""
    fixed_never: Bools | None = None
    """Members that never drain what is fixed on them; None when nothing is."""

    @property
    def n_outliers(self) -> int:
        """Number of outliers."""
        return len(self.outliers_s)


def search_bounds(problem: Problem, work: Work, bound_s: float) -> SearchBounds:
    """The bounds of a problem.

    Args:
        problem: The group.
        work: What there is to read.
        bound_s: No assignment drains the group sooner; beyond the horizon it is replaced by the bound at the horizon.
    """
    model = problem.cost_model
    bound_s = within_horizon(problem, work, bound_s)
    readers = work.fastest()
    alone_s = model.finite_drain_s(work.lag, work.rate, readers)
    fastest = work.taking_part()
    slowest = largest(alone_s, len(fastest))
    # Without the k slowest partitions and the k fastest members, k = 0, 1, ...; one member has to be left.
    # The k partitions are given the fastest members, where they take least.
    out = slowest[: len(fastest) - 1]
    lag, rate = (left_without(values, out) for values in (work.lag, work.rate))
    capacity = left_without(fastest, np.arange(len(out)))
    rest_s = model.finite_drain_s(lag, rate, capacity)
    is_outlier = np.append(alone_s[out] > rest_s[: len(out)] * NEAR, False)
    n_outliers = int(is_outlier.argmin())
    return SearchBounds(
        all_s=bound_s,
        rest_s=float(rest_s[n_outliers]) if n_outliers > 0 else bound_s,
        outliers_s=alone_s[slowest[:n_outliers]],
        slowest=work.partitions[slowest],
        slowest_s=alone_s[slowest],
        # Arrivals alone fill the fastest reader (utilisation of at least 1): the backlog has no end.
        never=work.partitions[slowest][work.rate[slowest] >= readers[slowest]],
    )


def within_horizon(problem: Problem, work: Work, bound_s: float) -> float:
    """The bound, or if it is beyond the horizon that of all work arrived by the horizon."""
    horizon_s = problem.cost_model.horizon_s
    return lower_bound(work.as_of(horizon_s)).time_s if bound_s > horizon_s else bound_s


def left_without(values: Floats, out: Int64s) -> Floats:
    """Sums of the values without the first k of `out`, k = 0 .. len(out).

    Added up from the end: subtracting from the total would lose values that are 1e16 times smaller than it.
    """
    others = np.ones(len(values), np.bool_)
    others[out] = False
    left: Floats = np.cumsum(np.append(values[others].sum(), values[out[::-1]]))[::-1]
    return left


def largest(values: Floats, n: int) -> Int64s:
    """Positions of the n largest, falling."""
    some = np.argpartition(values, len(values) - n)[len(values) - n :] if 0 < n < len(values) else None
    positions: Int64s = np.arange(len(values))[:n] if some is None else np.sort(some)
    return positions[np.argsort(-values[positions], kind="stable")]
