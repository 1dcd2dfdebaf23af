"""Remarks of `lag-sticky` on its answer, above all why it does not help."""

import math

import numpy as np

from assignor.evaluation.drain.bound import LowerBound, lower_bound, not_taken
from assignor.evaluation.drain.words import cause_in_words, obstacles, rate_in_words, time_in_words
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Floats, Int32s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.solve import SolveResult, lag_areas, move_cost

_SAME = 1 + 1e-6
_NEAR = 1 + 1e-3
"""As in the search: a gain of less than this from the floor is none."""
_CLOSE = 1.01
_FAR = 1.05
_TRIED = "packing to deadlines and improving step by step were tried"


def remarks(
    group: Group, work: Work, bound: LowerBound | None, first: SolveResult, member: Int32s
) -> tuple[str, ...]:
    """Sentences for the operator; none if the answer needs no explanation.

    Args:
        group: The group.
        work: Its unread and arriving records.
        bound: Lower bound of its drain time; None if no member is late, so that none was computed.
        first: Result of the first solve, which started from the current owners.
        member: Member of each partition after the last solve.
    """
    sentences = [*obstacles(group, not_taken(group) or bound), *_on_terms(first.problem)]
    moved = int(((group.owner >= 0) & (member != group.owner)).sum())
    forced = moved - first.accepted.moves
    if forced > 0 and first.budget < len(work.partitions):
        sentences.append(f"{forced} moves are forced by count_cap or counts, in addition to max_moves")
    if moved == 0:
        further = "" if np.array_equal(group.owner, member) else "further "
        sentences.append(f"no {further}move: {_why_no_move(group, bound, first)}")
    elif first.accepted.moves >= first.budget:
        bound_s = (bound or lower_bound(work)).time_s
        if first.accepted.makespan_s > bound_s * _FAR:
            least = time_in_words(bound_s)
            sentences.append(f"max_moves of {first.budget} is used up; no assignment takes less than {least}")
    return tuple(sentences)


def remarks_at_rest(group: Group, options: Options, capacity: Floats) -> tuple[str, ...]:
    """Sentences about a group in which nobody is late and nobody idle, and nothing moves."""
    return (
        *obstacles(group, not_taken(group)),
        *_assumed(group, capacity),
        f"no move: {_nobody_late(options)}",
    )


def _assumed(group: Group, capacity: Floats) -> list[str]:
    if group.capacity is not None:
        return []
    return [f"no member's capacity is known: {capacity[0]:.0f} records/s assumed for each"]


def _nobody_late(options: Options) -> str:
    return f"no member needs more than {time_in_words(options.floor_s)}"


def _on_terms(problem: Problem) -> list[str]:
    """Assumptions, and options that could not be kept."""
    sentences = _assumed(problem.group, problem.capacity)
    cap = problem.options.count_cap
    if cap is not None and cap < problem.cap:
        sentences.append(f"count_cap is {problem.cap}: with {cap} there is no place for every partition")
    return sentences


def _why_no_move(group: Group, bound: LowerBound | None, result: SolveResult) -> str:
    start, best = result.start, result.best
    if bound is None or not start.loads_s.any():
        return _nobody_late(result.problem.options)
    if best.moves > 0:
        return _why_not_accepted(result)
    return _why_no_gain(group, bound, result)


def _why_no_gain(group: Group, bound: LowerBound, result: SolveResult) -> str:
    """Why the search found nothing better than the start."""
    options, start = result.problem.options, result.start
    if start.makespan_s <= options.floor_s:
        if start.loads_s[0] <= options.floor_s * _NEAR:
            # A tenth of headroom, but for rounding: more counts for nothing.
            return _nobody_late(options)
        gain = (
            "more headroom"
            if options.move_cost_s == 0
            else "enough headroom for its moves to pay (move_cost_s)"
        )
        words = _none(result, f"gives the busiest member {gain}", is_proved=result.all_tried)
        return f"nobody is late, and {words}"
    if math.isfinite(bound.time_s) and start.makespan_s <= bound.time_s * _CLOSE:
        apart = start.makespan_s / bound.time_s if bound.time_s > 0 else 1.0
        by = f" by more than {math.ceil(1000 * (apart - 1)) / 1000:.1%}" if apart > _SAME else ""
        return f"no assignment is sooner{by}, for {cause_in_words(group, bound)}"
    if result.budget == 0:
        return "max_moves is 0"
    # Without headroom the load of a member is more than its drain time, and only loads were compared.
    is_proved = result.all_tried and start.loads_s[0] <= start.makespan_s * _SAME
    return _none(result, _gain_sought(bound, result), is_proved=is_proved)


def _gain_sought(bound: LowerBound, result: SolveResult) -> str:
    """The gain for which the search looked, as it counts times and moves."""
    options = result.problem.options
    gain = "drains it sooner" if math.isfinite(bound.time_s) else "relieves its slowest member"
    if options.move_cost_s > 0:
        gain += f" by {options.move_cost_s:g} s for each"
    # Loads were compared, and those above this are drain times, however many moves are paid for.
    near_s = result.problem.cost_model.most_without_lag_s + options.move_cost_s * result.budget
    if options.floor_s > 0 and result.start.makespan_s < near_s:
        gain += f", with times up to {options.floor_s:g} s counted as {options.floor_s:g} s"
        gain += " and members with less than a tenth of headroom as later"
    return gain


def _none(result: SolveResult, gain: str, *, is_proved: bool) -> str:
    """The remark that no plan has the gain if that is proved, or that none was found."""
    if is_proved:
        return f"no plan of at most {result.budget} {gain}"
    return f"no plan was found of at most {result.budget} that {gain}: {_TRIED}"


def _why_not_accepted(result: SolveResult) -> str:
    """The figures of a best solution that does not pay."""
    problem, start, best = result.problem, result.start, result.best
    before, after = lag_areas(problem, start, best)
    saved, spent = before - after, move_cost(problem, best)
    moves = f"{best.moves} move{'s' if best.moves > 1 else ''}"
    if saved <= spent:
        return f"{moves} {_does_not_pay(problem, best, saved, spent)}"
    # Paid for, but too little: `pays` weighs what is left after the cost against `min_gain`.
    share = (saved - spent) / before
    return (
        f"{moves} would save {share:.1%} of the lag area, less than min_gain ({problem.options.min_gain:.1%})"
    )


def _does_not_pay(problem: Problem, best: Solution, saved: float, spent: float) -> str:
    excess = best.rate - problem.capacity
    worst = int(excess.argmax())
    # The area of a member that never drains is infinite: a figure of it means nothing.
    if excess[worst] > 0:
        name = problem.group.member_ids[worst]
        return (
            f"would not make the group catch up: {name} would still receive "
            f"{rate_in_words(float(excess[worst]))} more than it drains"
        )
    if saved < 0:
        return "would drain the slowest member sooner, but leave more lag in all until everything is drained"
    return f"would save {saved:.0f} record-seconds of lag and cost {spent:.0f}"
