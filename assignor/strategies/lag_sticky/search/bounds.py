"""How much sooner the group could be drained, with and without its slowest partitions."""

from dataclasses import dataclass

import numpy as np

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem

_NEAR = 1 + 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchBounds:
    """Times that no assignment can beat, and the partitions behind them."""

    all_s: float
    """No assignment drains the group sooner."""
    rest_s: float
    """No assignment drains the rest sooner while each outlier has one of the fastest members to itself."""
    n_outliers: int
    """Number of partitions that take longer than `rest_s` even with a member to themselves."""
    slowest: Int64s
    """The partitions that take longest with the fastest of their readers to themselves, the slowest first."""
    slowest_s: Floats
    """The time that each of them takes."""
    never: Int64s
    """Those of them that not even that member ever drains."""


def search_bounds(problem: Problem, work: Work, bound_s: float) -> SearchBounds:
    """The bounds of a problem.

    Args:
        problem: The group.
        work: What there is to read.
        bound_s: No assignment drains the group sooner; beyond the horizon it is replaced by the bound at the horizon.
    """
    model = problem.cost_model
    if bound_s > model.horizon_s:
        bound_s = lower_bound(work.as_of(model.horizon_s)).time_s
    readers = work.fastest()
    alone_s = model.finite_drain_s(work.lag, work.rate, readers)
    fastest = work.taking_part()
    slowest = _largest(alone_s, len(fastest))
    # Without the k slowest partitions and the k fastest members, k = 0, 1, ...; one member has to be left.
    # The k partitions are given the fastest members, where they take least.
    out = slowest[: len(fastest) - 1]
    lag, rate = (_left_without(values, out) for values in (work.lag, work.rate))
    capacity = _left_without(fastest, np.arange(len(out)))
    rest_s = model.finite_drain_s(lag, rate, capacity)
    is_outlier = np.append(alone_s[out] > rest_s[: len(out)] * _NEAR, False)
    n_outliers = int(is_outlier.argmin())
    return SearchBounds(
        all_s=bound_s,
        rest_s=float(rest_s[n_outliers]) if n_outliers > 0 else bound_s,
        n_outliers=n_outliers,
        slowest=work.partitions[slowest],
        slowest_s=alone_s[slowest],
        never=work.partitions[slowest][work.rate[slowest] >= readers[slowest]],
    )


def _left_without(values: Floats, out: Int64s) -> Floats:
    """Sums of the values without the first k of `out`, k = 0 .. len(out).

    Added up from the end: subtracting from the total would lose values that are 1e16 times smaller than it.
    """
    others = np.ones(len(values), np.bool_)
    others[out] = False
    left: Floats = np.cumsum(np.append(values[others].sum(), values[out[::-1]]))[::-1]
    return left


def _largest(values: Floats, n: int) -> Int64s:
    """Positions of the n largest, falling."""
    some = np.argpartition(values, len(values) - n)[len(values) - n :] if 0 < n < len(values) else None
    positions: Int64s = np.arange(len(values))[:n] if some is None else np.sort(some)
    return positions[np.argsort(-values[positions], kind="stable")]
