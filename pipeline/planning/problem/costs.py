"""Is it the member or the partition: what a record costs, learned where slowness has moved together with a partition.

A member's speed in records/s is its own speed over the mean cost of what it reads. One member alone cannot tell the two
apart. When a partition has been with two members that both showed their speed, and one of them shows another speed
without it, what is common to both is the partition's and the rest is the members'.

    log shown = log speed(member) - log sum(share(p) * cost(p))

is fitted to the newest spells of all members, with costs drawn towards 1 and speeds towards that of the group
(Gauss-Newton on the penalised least squares, a two-factor model with shrinkage as in Gelman and Hill, Data Analysis
Using Regression and Multilevel/Hierarchical Models (2007), ch. 12). Costs below `WORTH_SAYING` count as 1.

Example: m shows 444/s with p among four equal partitions, and 1,000/s without; n shows 500/s with p among five. p costs
6 times what others cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats

LEAST_SPELLS = 3
"""With a partition twice, and once without: less tells nothing apart."""
_NOISE = 0.08
"""Standard deviation of the logarithm of a speed that is shown."""
_COST_SPREAD = 0.8
"""The same of costs, before anything is known."""
_SPEED_SPREAD = 0.7
"""The same of members' speeds."""
_MOST_COST = 50.0
WORTH_SAYING = 2.0
_CLEARLY_SLOWER = float(np.log(0.8))
_MEMBERS = 2
"""Slowness that only one member has shown is that member's."""
_ROUNDS = 12
_EXACT = 1e-4
_LONGEST_STEP = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """A speed that a member has shown with some partitions."""

    member: int
    """Number of the member."""
    speed: float
    """Records/s."""
    share: Floats
    """P entries: share of its records that come from the partition; 0 for those that it did not hold."""


def costs(shown: Sequence[Shown], n_partitions: int) -> Floats:
    """P entries: work that a record of the partition takes, in records of an ordinary one; 1 where nothing is known."""
    found = np.ones(n_partitions)
    if len(shown) < LEAST_SPELLS:
        return found
    shares = np.stack([one.share for one in shown])
    members = np.array([one.member for one in shown])
    speeds = np.log([one.speed for one in shown])
    between = np.flatnonzero(_is_told_apart(shares, members))
    tried = np.array(
        [p for p in between.tolist() if _is_slower_with(shares[:, p] > 0, speeds, members)], np.int64
    )
    if not len(tried):
        return found
    logs = _fitted(speeds, members, shares[:, tried], shares.sum(axis=1))
    cost = np.minimum(np.exp(logs), _MOST_COST)
    found[tried] = np.where(cost >= WORTH_SAYING, cost, 1.0)
    return found


def _is_told_apart(shares: Floats, members: Floats) -> Bools:
    """P entries: two members have shown speeds with the partition, and one of them also without it."""
    held = shares > 0
    numbers = np.unique(members)
    with_it = np.stack([held[members == number].any(axis=0) for number in numbers])
    without = np.stack([(~held[members == number]).any(axis=0) for number in numbers])
    told: Bools = (with_it.sum(axis=0) >= _MEMBERS) & (with_it & without).any(axis=0)
    return told


def _is_slower_with(held: Bools, speeds: Floats, members: Floats) -> bool:
    """Whether two members are slower with the partition: than they are without it, or than members are without it."""
    usual = float(np.median(speeds[~held]))
    slower = 0
    for number in np.unique(members[held]).tolist():
        own = members == number
        without = speeds[own & ~held]
        reference = float(np.median(without)) if len(without) else usual
        slower += float(np.median(speeds[own & held])) < reference + _CLEARLY_SLOWER
    return slower >= _MEMBERS


def _fitted(speeds: Floats, members: Floats, shares: Floats, whole: Floats) -> Floats:
    """Logarithms of the costs of the partitions that are tried, columns of `shares`; all others cost 1."""
    numbers, slot = np.unique(members, return_inverse=True)
    k, n = shares.shape[1], len(numbers)
    rest = np.maximum(whole - shares.sum(axis=1), 0.0)
    typical = float(np.median(speeds))
    prior = np.concatenate([np.zeros(k), np.full(n, typical)])
    weight = np.concatenate([np.full(k, _COST_SPREAD**-2), np.full(n, _SPEED_SPREAD**-2)])
    at = prior.copy()
    rows = np.arange(len(speeds))
    for _ in range(_ROUNDS):
        loads = shares * np.exp(at[:k])
        mean_cost = loads.sum(axis=1) + rest
        residual = speeds - at[k:][slot] + np.log(mean_cost)
        slope = np.zeros((len(speeds), k + n))
        slope[:, :k] = loads / mean_cost[:, None]
        slope[rows, k + slot] = -1.0
        normal = slope.T @ slope / _NOISE**2 + np.diag(weight)
        step = np.linalg.solve(normal, slope.T @ residual / _NOISE**2 + weight * (at - prior))
        at -= np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _EXACT:
            break
    logs: Floats = at[:k]
    return logs
