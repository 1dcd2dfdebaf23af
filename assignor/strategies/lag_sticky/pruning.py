"""Pruning: takes back moves that are not worth their cost."""

import numpy as np

from assignor.evaluation.drain.counterfactual import MemberLoads, MovedPartitions, counterfactuals
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem, Solution

_MOST_ROUNDS = 32


def prune_moves(problem: Problem, solution: Solution, start: Solution) -> Solution:
    """The solution without the moves that gain too little.

    A move is taken back if the slower of its two members is then later by no more than `move_cost_s`. All times
    up to the floor count as equal.

    Args:
        problem: The group.
        solution: The solution to prune.
        start: The solution without any change; the result is no later.
    """
    # Without a single one of the moves the counts would be uneven.
    if problem.options.counts == "even" or solution.moves == 0:
        return solution
    for _ in range(_MOST_ROUNDS):
        taken_back = _prunable(problem, solution)
        if len(taken_back) == 0:
            return solution
        changes = solution.changes()
        changes.update(
            dict(zip(taken_back.tolist(), problem.current_owner[taken_back].tolist(), strict=True))
        )
        pruned = problem.solution(changes)
        if pruned.makespan_s > start.makespan_s:
            return solution
        solution = pruned
    return solution


def _prunable(problem: Problem, solution: Solution) -> Int64s:
    """Moves to take back together.

    No two of them concern the same member: each counterfactual leaves out one move only, so it would be wrong
    about a member that another pruned move changes as well.
    """
    owner = problem.current_owner[solution.partitions]
    is_move = (owner >= 0) & (owner != solution.to_member)
    partitions = solution.partitions[is_move]
    from_member, to_member = owner[is_move], solution.to_member[is_move]
    loads = MemberLoads(lag=solution.lag, rate=solution.rate, capacity=problem.capacity)
    moved = MovedPartitions(
        lag=problem.lag[partitions],
        rate=problem.rate[partitions],
        from_member=from_member,
        to_member=to_member,
    )
    model, floor_s = problem.cost_model, problem.options.floor_s
    without = counterfactuals(loads, moved, drain_s=model.load_s, lag_area=model.lag_area)
    loads_s = np.maximum(solution.member_loads_s, floor_s)
    # Clipped at the floor from below: what happens beneath it is worth no move.
    later_s = np.maximum(np.maximum(without.from_s, without.to_s), floor_s)
    later_s -= np.maximum(loads_s[from_member], loads_s[to_member])
    count = problem.counts(solution)
    is_cheap = later_s <= problem.options.move_cost_s
    order = np.nonzero(is_cheap & (count[from_member] < problem.cap))[0]
    # The move that gains least comes first: of two that exclude each other it is taken back.
    order = order[np.lexsort((partitions[order], later_s[order]))]
    chosen: Int64s = partitions[_disjoint(from_member, to_member, order, problem.n_members)]
    return chosen


def _disjoint(from_member: Int32s, to_member: Int32s, order: Int64s, n_members: int) -> Int64s:
    touched: Bools = np.zeros(n_members, np.bool_)
    chosen = []
    for i in order.tolist():
        if not touched[from_member[i]] and not touched[to_member[i]]:
            touched[[from_member[i], to_member[i]]] = True
            chosen.append(i)
    return np.array(chosen, np.int64)
