"""The bounds of a search in which some partitions are fixed or some members closed."""

import numpy as np

from assignor.evaluation.drain.work import FixedLoad, Work
from assignor.model.arrays import Floats
from assignor.strategies.lag_sticky.problem import Problem
from assignor.strategies.lag_sticky.search.bounds import (
    NEAR,
    SearchBounds,
    largest,
    left_without,
    within_horizon,
)


def bounds_over_fixed(problem: Problem, work: Work, fixed: FixedLoad, bound_s: float) -> SearchBounds:
    """The bounds over what is fixed.

    What is fixed on a member is one item that only this member can have, so it may be an outlier as a partition may:
    then the rest has to do without the member. Closed members never take part in the rest.

    Args:
        problem: The group.
        work: What there is to read.
        fixed: The part of it that is fixed.
        bound_s: No assignment drains the group sooner; may be `inf`.
    """
    model = problem.cost_model
    bound_s = within_horizon(problem, work, bound_s)
    # A partition needs at least as long as it does with its fastest reader to itself.
    loose = work.loose()
    readers = loose.fastest()
    alone_s = model.finite_drain_s(loose.lag, loose.rate, readers)
    fixed_s = model.finite_drain_s(fixed.lag, fixed.rate, problem.capacity)
    rest_s, outliers_s = 0.0, np.zeros(0)
    if len(loose.partitions) > 0:
        rest_s, outliers_s = _without_outliers(problem, loose, fixed, np.concatenate((alone_s, fixed_s)))
    slowest = largest(alone_s, problem.n_members)
    return SearchBounds(
        all_s=bound_s,
        rest_s=rest_s if len(outliers_s) > 0 else max(bound_s, rest_s),
        outliers_s=outliers_s,
        slowest=loose.partitions[slowest],
        slowest_s=alone_s[slowest],
        never=loose.partitions[slowest][loose.rate[slowest] >= readers[slowest]],
        fixed_s=fixed_s,
        fixed_never=(fixed.rate > problem.capacity) | ((fixed.rate == problem.capacity) & (fixed.lag > 0)),
    )


def _without_outliers(
    problem: Problem, loose: Work, fixed: FixedLoad, item_s: Floats
) -> tuple[float, Floats]:
    """The bound of the rest, and the times of the outliers it does without: the slowest items, while they are slower.

    An item that is a partition is given the fastest member that is left; one member has to be left for the rest.

    Args:
        problem: The group.
        loose: The partitions that are not fixed.
        fixed: What is fixed on each member.
        item_s: Time that each item takes with a member to itself: the partitions, then what is fixed on each member.
    """
    model, capacity, n_members = problem.cost_model, problem.capacity, problem.n_members
    # Volume bound of scheduling on uniform machines, over ever fewer members: what is left over what they can do
    # together (Gonzalez, Ibarra, Sahni 1977), less the items that need longer than that in any case.
    takes = loose.readers()
    order = largest(item_s, n_members)
    # Sums without the first k items, k = 0, 1, ...
    lag = left_without(np.concatenate((loose.lag, np.where(takes, fixed.lag, 0.0))), order)
    rate = left_without(np.concatenate((loose.rate, np.where(takes, fixed.rate, 0.0))), order)
    fastest = np.argsort(-capacity, kind="stable")
    for k, item in enumerate(order.tolist()):
        spare = capacity[takes].sum(keepdims=True)
        rest_s = float(model.finite_drain_s(lag[k : k + 1], rate[k : k + 1], spare)[0])
        member = item - len(loose.lag)
        if member < 0:
            # To give a partition the fastest member leaves the rest worst off, so the bound stays one.
            member = int(fastest[takes[fastest]][0])
        is_last = k == n_members - 1 or (takes[member] and takes.sum() == 1)
        if is_last or item_s[item] <= rest_s * NEAR:
            return rest_s, item_s[order[:k]]
        takes[member] = False
    return 0.0, np.zeros(0)
