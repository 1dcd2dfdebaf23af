"""Cost of a partition's records, learned before it moves from what its owner reads while it is behind.

A member that is behind spends all its time, so the work that it does in a second is the same from reading to reading:

    sum over its partitions of cost(p) * rate(p) = speed

If all records cost the same, it reads as many records/s whatever they are of. If those of p cost k times as much, it
reads fewer the more of them are p's. One partition after the other is tried, with the k that fits best, and tested
against "all cost the same" (F test of one parameter, Bonferroni's correction for the number of partitions).

The share of p alone would mislead: while the member happens to be fast, what it is behind in takes all of the gain, so
the share of every partition that keeps up falls, as if its records were expensive (simultaneity; Haavelmo, The
statistical implications of a system of simultaneous equations, Econometrica 1943). So its speed is predicted from what
its speed does not decide: the records of partitions that keep up, which are what arrives, and the mix among the others.

Example: p is behind, and 440 records/s of partitions that keep up leave time for 93 of p; when 400 arrive, for 100.
The member reads 533, then 500 records/s: a record of p costs 6 times what others cost. With equal costs it would have
read 533 both times.

Two partitions of which it reads the same share in all readings cannot be told apart, and neither is named.
"""

import math

import numpy as np

from assignor.model.arrays import Bools, Floats
from pipeline.planning.problem.costs import WORTH_SAYING

LEAST_READINGS = 6
_COSTS: Floats = np.exp(np.linspace(0.0, math.log(30.0), 35))
"""Costs that are tried."""
_NOISE = 0.01
"""Least standard deviation of what a member reads, over the mean: what commits and clocks show is no more exact."""
_SIGNIFICANCE = 1e-4
"""Chance to find a cost where there is none, in one group and once."""
_SURELY = (1.3, 25.0)
"""The cost is at least the first, and at most the second: one without an upper bound fits anything."""
_BOUND = 4.0
"""Twice the fall of the log likelihood from the best cost to its bounds (95 %)."""
_LEAD = 6.0
"""The same from the best partition to the next one."""
_BY_CHANCE = 1.64
"""Standard deviations of the correlation of independent readings that one in twenty exceeds."""
_MOST_CORRELATED = 0.95


def told(rates: Floats, behind: Bools, n_tests: int) -> tuple[int, float] | None:
    """The partition whose records cost more than those of the others, and how many times; None where nothing shows it.

    Args:
        rates: Records/s that one member read, a row for each reading, a column for each partition.
        behind: Was it behind in the partition for the whole reading.
        n_tests: Number of partitions that are tried in the group.
    """
    n, partitions = rates.shape
    if n < LEAST_READINGS or partitions == 1:
        return None
    total = rates.sum(axis=1)
    left = _left(rates, behind, total)
    errors = (left**2).sum(axis=2)
    least = errors.min(axis=1)
    best, second = np.argsort(least, kind="stable")[:2].tolist()
    at = int(errors[best].argmin())
    variance, exact = float(least[best]) / (n - 2), (_NOISE * float(total.mean())) ** 2
    # Below the precision of commits and clocks, a correlation shows no drift.
    inflation = _inflation(left[best, at]) if variance > exact else 1.0
    variance = max(variance, exact) * inflation
    above = (errors - least[best]) / variance
    cost = float(_COSTS[at])
    fits = _COSTS[above[best] <= _BOUND]
    is_told = (
        cost >= WORTH_SAYING
        and _SURELY[0] <= float(fits[0])
        and float(fits[-1]) <= _SURELY[1]
        and float(above[second].min()) >= _LEAD
        and 2 * n_tests * _chance(float(above[best, 0]), max(n / inflation - 2, 1.0)) <= _SIGNIFICANCE
    )
    return (best, cost) if is_told else None


def _left(rates: Floats, behind: Bools, total: Floats) -> Floats:
    """Residuals of the predicted total, by partition, cost of its records, and reading.

    With speed B and kept-up records z, the total is B - (k - 1) * rate(p) where p keeps up, and z + (B - z) / d
    with d = 1 + (k - 1) * (share of p in the rest) where it does not. B is the one that fits best.
    """
    rest = np.where(behind, rates, 0.0).sum(axis=1)
    kept_up = total - rest
    share = rates / np.where(rest > 0, rest, 1.0)[:, None]
    found = np.empty((rates.shape[1], len(_COSTS), len(rates)))
    for p in range(rates.shape[1]):
        is_behind = behind[:, p, None]
        d = 1.0 + (_COSTS - 1.0) * share[:, p, None]
        slope = np.where(is_behind, 1.0 / d, 1.0)
        known = np.where(is_behind, kept_up[:, None] * (1.0 - 1.0 / d), (1.0 - _COSTS) * rates[:, p, None])
        left = total[:, None] - known
        speed = (slope * left).sum(axis=0) / (slope**2).sum(axis=0)
        found[p] = (left - slope * speed).T
    return found


def _inflation(left: Floats) -> float:
    """How much less readings say than independent ones, as a member's speed drifts: (1 + r) / (1 - r).

    r is the correlation of one reading with the next, if it is more than chance (Bartlett, Some aspects of the
    time-correlation problem, J. R. Stat. Soc. 1935).
    """
    off = left - left.mean()
    spread = float((off**2).sum())
    r = float((off[1:] * off[:-1]).sum()) / spread if spread > 0 else 0.0
    if r < _BY_CHANCE / math.sqrt(len(left)):
        return 1.0
    r = min(r, _MOST_CORRELATED)
    return (1 + r) / (1 - r)


def _chance(f: float, freedom: float) -> float:
    """Chance of Student's t above sqrt(f) (Wallace, Bounds on normal approximations, Ann. Math. Stat. 1959)."""
    normal = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(max(f, 0.0) / freedom))
    return 0.5 * math.erfc(normal / math.sqrt(2))
