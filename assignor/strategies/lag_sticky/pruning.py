"""Moves that are not worth their price are taken back."""

import numpy as np

from assignor.evaluation.drain.counterfactual import Loads, Moved, undone
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Plan, Problem

_MOST_ROUNDS = 32


def trimmed(problem: Problem, plan: Plan, start: Plan) -> Plan:
    """The plan without the moves that buy too little.

    A move is taken back if the slower of its two members is then later by no more than `move_cost_s`. Times up
    to the floor are alike.

    Args:
        problem: The group.
        plan: The plan.
        start: Where nothing has moved; the result is no later.
    """
    if problem.terms.counts == "even":
        return plan
    for _ in range(_MOST_ROUNDS):
        back = _not_worth_it(problem, plan)
        if len(back) == 0:
            return plan
        changes = plan.changes()
        changes.update(dict(zip(back.tolist(), problem.home[back].tolist(), strict=True)))
        less = problem.plan(changes)
        if less.late_s > start.late_s:
            return plan
        plan = less
    return plan


def _not_worth_it(problem: Problem, plan: Plan) -> Int64s:
    """Moves to take back together, for no two of them concern the same member."""
    home = problem.home[plan.pid]
    is_move = (home >= 0) & (home != plan.to)
    pid, giver, taker = plan.pid[is_move], home[is_move], plan.to[is_move]
    loads = Loads(lag=plan.lag, rate=plan.rate, capacity=problem.capacity)
    moved = Moved(lag=problem.lag[pid], rate=problem.rate[pid], giver=giver, taker=taker)
    price = problem.price
    without = undone(loads, moved, time_s=price.pressure_s, record_s=price.record_s)
    floor_s = problem.terms.floor_s
    pressures = np.maximum(price.pressure_s(plan.lag, plan.rate, problem.capacity), floor_s)
    later_s = np.maximum(np.maximum(without.giver_s, without.taker_s), floor_s)
    later_s -= np.maximum(pressures[giver], pressures[taker])
    count = problem.counts(plan)
    order = np.nonzero((later_s <= problem.terms.move_cost_s) & (count[giver] < problem.cap))[0]
    order = order[np.lexsort((pid[order], later_s[order]))]
    chosen: Int64s = pid[_disjoint(giver, taker, order, problem.n_members)]
    return chosen


def _disjoint(giver: Int32s, taker: Int32s, order: Int64s, n_members: int) -> Int64s:
    touched: Bools = np.zeros(n_members, np.bool_)
    chosen = []
    for i in order.tolist():
        if not touched[giver[i]] and not touched[taker[i]]:
            touched[[giver[i], taker[i]]] = True
            chosen.append(i)
    return np.array(chosen, np.int64)
