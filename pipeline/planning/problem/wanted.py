"""What a strategy wants for a group, within the limits of one plan and around what has to stay."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from assignor.evaluation.drain.words import rate_in_words
from assignor.evaluation.validity import check
from assignor.model.arrays import Bools
from assignor.model.assignment import Assignment
from assignor.strategies.registry import strategy
from pipeline.planning import reasons
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.fixed import cooling_down, held_by, limits, silent, standing
from pipeline.planning.problem.steps import moves_of, step_towards
from pipeline.planning.problem.work import expensive
from pipeline.planning.state import GroupState

_LONG_S = 60.0
"""A group that drains sooner than this needs no explanation."""


def wanted(case: Case, state: GroupState) -> tuple[Case, Assignment]:
    """The strategy's answer, and the case in which nothing moves that is fixed, as the strategy saw it."""
    resting = (
        cooling_down(case.group, case.beliefs, case.rules.guards, state, now_ms=case.now_ms) & ~case.pinned
    )
    case = _with_fixed(case, state, resting)
    assignment = _within_limits(case, state)
    remarks = list(assignment.remarks)
    reads_lag = strategy(case.rules.strategy).reads_lag
    if (case.pinned | resting).any() and (not reads_lag or limits(case.group, assignment)):
        remarks.append(reasons.fixed(int(case.pinned.sum()), int(resting.sum())))
    if case.why_old is not None:
        remarks.append(reasons.stays_while_old(case.why_old))
    remarks += _unseen(case, state, assignment)
    return case, replace(assignment, remarks=tuple(remarks))


def _with_fixed(case: Case, state: GroupState, resting: Bools) -> Case:
    """The case in which partitions that rest, and what else is fixed now, do not move."""
    stays, closed = fixed_now(case, state)
    fixed = stays | resting
    if not (fixed.any() or closed.any()):
        return case
    group = replace(case.group, fixed=fixed if fixed.any() else None, closed=closed if closed.any() else None)
    return replace(case, group=group)


def _within_limits(case: Case, state: GroupState) -> Assignment:
    """The strategy's answer, or the part of it that one plan may move, with a remark that says so."""
    group, rules = case.group, case.rules
    chosen = strategy(rules.strategy)
    # What an operator asks for at once is held back by no guard.
    is_limited = case.trigger(state) is None
    options = dict(rules.options)
    most = rules.guards.most_moves(group.n_partitions, has_budget=chosen.has_budget)
    if chosen.has_budget:
        given = options.setdefault("max_moves", most)
        options["max_moves"] = min(given, most) if is_limited else given
    whole = chosen.assign(group, options)
    check(group, whole)
    if not is_limited or chosen.moves_whole:
        return whole
    step = step_towards(group, whole, most, by_number=chosen.joins)
    if step is whole and int(moves_of(group, whole.member).sum()) > most:
        # An unowned partition does not wait until its number may move: it joins the rest of the number.
        around = replace(group, fixed=group.owner >= 0)
        step = chosen.assign(around, options)
        check(around, step)
    if step is whole or np.array_equal(step.member, group.owner):
        return whole
    check(group, step)
    made, wanted = (int(moves_of(group, one.member).sum()) for one in (step, whole))
    return replace(step, remarks=(*whole.remarks, reasons.step(made, wanted, rules.guards.moves_share)))


def fixed_now(case: Case, state: GroupState) -> tuple[Bools, Bools]:
    """P entries: what may not move, rest aside; N entries: members that are given nothing."""
    if not case.standing and not state.silent_since_ms:
        # This holds for most groups, and there are thousands.
        return case.pinned | case.old, np.zeros(case.group.n_members, np.bool_)
    still = standing(case.group, case.standing)
    return case.pinned | case.old | held_by(case.group, still), silent(case.group, state) | still


def _unseen(case: Case, state: GroupState, assignment: Assignment) -> Iterator[str]:
    """What the target rests on that nobody has seen."""
    yield from _unproven(case, assignment)
    if quiet := [name for name in case.group.member_ids if name in state.silent_since_ms]:
        yield reasons.planned_around(quiet)
    if case.standing:
        yield reasons.stands_still(sorted(case.standing))
    if dear := expensive(case.group.topics, case.cost):
        yield reasons.costs_more(dear)


def _unproven(case: Case, assignment: Assignment) -> Iterator[str]:
    """The members that have shown no limit, where the target rests on them."""
    group = case.group
    moved = (assignment.member != group.owner) & (assignment.member >= 0)
    takers = sorted({*assignment.member[moved].tolist()})
    names = [group.member_ids[number] for number in takers]
    if not moved.any() and (assignment.bound_s or 0.0) > _LONG_S:
        # That nothing drains the group sooner rests on all members.
        names = list(group.member_ids)
    beliefs = {name: case.beliefs[name] for name in names if name in case.beliefs}
    unproven = [name for name, belief in beliefs.items() if not belief.is_shown]
    if unproven:
        most = rate_in_words(max(beliefs[name].capacity for name in unproven))
        # Where costs are known, capacities are in work.
        yield reasons.optimistic(unproven, most if case.cost is None else f"{most} of ordinary cost")
