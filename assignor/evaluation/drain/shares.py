"""The drain time that members with different subscriptions cannot beat, however finely work is divided."""

import numpy as np

from assignor.evaluation.drain.time import summed, times_s
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Bools, Floats, Int64s

# Each round starts from the levels of the one before; what they are changes how tight the bound is, not
# whether it holds.
_MOST_ROUNDS = 6
_MOST_SWEEPS = 12
_SETTLED = 1e-6
_FEW_MEMBERS = 16
"""Number of members up to which lists are faster than numpy."""


def shares_bound(work: Work) -> tuple[float, Bools]:
    """Seconds that a union of subscriber sets needs at least, and which sets; `inf` for never.

    Take any subscriber sets, Q, and all members that are in at least one of them. The partitions of Q lie on
    these members only. A member has drained what it holds by time T only if L + A*T <= mu*T; added up over the
    members: T >= L(Q) / (mu(Q) - A(Q)). That holds for every Q, so it needs no proof that the chosen Q is the best.

    The best Q follows from the most even division of the work. The work of each set at time T is spread over its
    members by water-filling, set after set, until the levels settle; then Q is the sets all of whose members are
    above some level. That is the union for which Hall's condition is tight. T is raised to the bound found, and the
    water-filling repeated.

    Returns:
        The bound, and for each of S sets whether it is in Q.
    """
    lag, rate = work.of_sets()
    sets = work.subscriptions
    used = (sets.set_sizes() > 0) & (np.bincount(work.set_of, minlength=sets.n_sets) > 0)
    levels = np.zeros(sets.n_members)
    # Without levels the sets come in their own order, and the last of the unions is everything.
    bound_s, chosen = _best_union(work, lag, rate, used, levels)
    if used.sum() <= 1:
        return bound_s, chosen
    flow = np.zeros(len(sets.members))
    for _ in range(_MOST_ROUNDS):
        if not np.isfinite(bound_s):
            break
        at_s = bound_s if bound_s > 0 else 1.0
        levels = _balanced_levels(work, lag + rate * at_s, used, flow)
        # Weights grow with T, so which union is tightest depends on the bound that it gives: a fixed point.
        time_s, union = _best_union(work, lag, rate, used, levels)
        if time_s <= bound_s * (1 + _SETTLED):
            break
        bound_s, chosen = time_s, union
    return bound_s, chosen


def _best_union(work: Work, lag: Floats, rate: Floats, used: Bools, levels: Floats) -> tuple[float, Bools]:
    """The best union among the first k sets, k = 1, 2, ..., ranked by the lowest level of their members."""
    sets = work.subscriptions
    lowest = np.full(sets.n_sets, np.inf)
    np.minimum.at(lowest, work.set_of_entry(), levels[sets.members])
    order = np.nonzero(used)[0]
    order = order[np.argsort(-lowest[order], kind="stable")]
    times = _union_times(work, lag, rate, order)
    chosen = np.zeros(sets.n_sets, np.bool_)
    chosen[order[: int(times.argmax()) + 1]] = True
    return float(times.max()), chosen


def _union_times(work: Work, lag: Floats, rate: Floats, order: Int64s) -> Floats:
    """The bound given by the first set of `order`, by the first two, and so on."""
    sets = work.subscriptions
    rank = np.full(sets.n_sets, len(order), np.int32)
    rank[order] = np.arange(len(order))
    # A member joins with the first of its sets, so one cumulative sum gives the capacity of every prefix.
    joins_at = np.full(sets.n_members, len(order), np.int32)
    np.minimum.at(joins_at, sets.members, rank[work.set_of_entry()])
    joined = summed(work.capacity, by=joins_at, n=len(order) + 1)[: len(order)]
    spare: Floats = np.cumsum(joined) - np.cumsum(rate[order])
    return times_s(np.cumsum(lag[order]), spare)


def _balanced_levels(work: Work, weight: Floats, used: Bools, flow: Floats) -> Floats:
    """Load over capacity of each member with the weight of the sets spread as evenly as subscriptions allow.

    Block coordinate descent: water-filling one set with all others fixed minimises the sum of load^2 / capacity over
    that set, so sweeps over the sets approach the most even division.

    Args:
        work: Sets and capacities.
        weight: Weight of each set.
        used: Sets that have partitions and members.
        flow: Weight on each entry of the sets' members; the starting point, overwritten with the result.
    """
    sets, capacity = work.subscriptions, work.capacity
    load = summed(flow, by=sets.members, n=sets.n_members)
    entries = [
        (s, slice(int(sets.offsets[s]), int(sets.offsets[s + 1]))) for s in np.nonzero(used)[0].tolist()
    ]
    for _ in range(_MOST_SWEEPS):
        before = load.copy()
        for s, entry in entries:
            members = sets.members[entry]
            load[members] -= flow[entry]
            flow[entry] = water_filling(load[members], capacity[members], float(weight[s]))
            load[members] += flow[entry]
        if np.abs(load - before).max() <= _SETTLED * max(float(load.max()), 1e-300):
            break
    return np.divide(load, capacity)


def water_filling(load: Floats, capacity: Floats, amount: float) -> Floats:
    """Water-filling: what each member gets when `amount` raises the lowest loads over capacity to one level.

    Example: loads 0, 4 and 9 on equal members. An amount of 6 lifts the first two to the level 5; the third is above
    it and gets nothing: 5, 1, 0.
    """
    if len(load) <= _FEW_MEMBERS:
        return np.array(_filled_one_by_one(load.tolist(), capacity.tolist(), amount), np.float64)
    order = np.argsort(load / capacity, kind="stable")
    sorted_load, sorted_capacity = load[order], capacity[order]
    level = (amount + np.cumsum(sorted_load)) / np.cumsum(sorted_capacity)
    # The level with the k lowest members is right where it does not reach the next one.
    k = int(np.argmax(level <= np.append(sorted_load[1:] / sorted_capacity[1:], np.inf)))
    added: Floats = np.maximum(level[k] * capacity - load, 0.0)
    return added


def _filled_one_by_one(load: list[float], capacity: list[float], amount: float) -> list[float]:
    """The same sums in the same order, so the result is the same to the last bit."""
    relative = [one / of for one, of in zip(load, capacity, strict=True)]
    order = sorted(range(len(load)), key=relative.__getitem__)
    level = held = drained = 0.0
    for m, following in zip(order, [*order[1:], None], strict=True):
        held, drained = held + load[m], drained + capacity[m]
        level = (amount + held) / drained
        if following is None or level <= relative[following]:
            break
    return [max(level * of - one, 0.0) for one, of in zip(load, capacity, strict=True)]
