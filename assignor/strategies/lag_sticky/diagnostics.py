"""What `lag-sticky` has to say about its answer, above all when it does not help."""

import math

import numpy as np

from assignor.evaluation.drain.bound import LowerBound
from assignor.evaluation.drain.words import cause_in_words, obstacles, time_in_words
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Int32s
from assignor.model.group import Group
from assignor.strategies.lag_sticky.solve import Round, areas, cost

_CLOSE = 1.01
_FAR = 1.05


def remarks(group: Group, work: Work, bound: LowerBound, played: Round, member: Int32s) -> tuple[str, ...]:
    """Sentences for the operator; none when the plan speaks for itself.

    Args:
        group: The group.
        work: What it has to read.
        bound: No assignment is sooner.
        played: The first round.
        member: Member of each partition after the last round.
    """
    words = list(obstacles(group, bound))
    if group.capacity is None:
        words.append(f"no member's capacity is known: {work.capacity[0]:.0f} records/s assumed for each")
    cap = played.problem.terms.count_cap
    if cap is not None and cap < played.problem.cap:
        words.append(f"count_cap is {played.problem.cap}: with {cap} there is no place for every partition")
    moved = int(((group.owner >= 0) & (member != group.owner)).sum())
    forced = moved - played.taken.moves
    if forced > 0 and played.budget < len(work.pid):
        words.append(f"{forced} moves are forced by count_cap or counts, beside max_moves")
    if moved == 0:
        further = "" if np.array_equal(group.owner, member) else "further "
        words.append(f"no {further}move: {_why_no_move(group, bound, played)}")
    elif played.taken.moves >= played.budget and played.taken.late_s > bound.time_s * _FAR:
        words.append(
            f"max_moves of {played.budget} is used up; no assignment takes less than {time_in_words(bound.time_s)}"
        )
    return tuple(words)


def _why_no_move(group: Group, bound: LowerBound, played: Round) -> str:
    terms, start, found = played.problem.terms, played.start, played.found
    if not start.pressures.any():
        return f"no member needs more than {time_in_words(terms.floor_s)}"
    if found.moves > 0:
        return _why_not_taken(played)
    if start.late_s <= terms.floor_s:
        return (
            f"nobody is late, and no plan of at most {played.budget} leaves the fullest member more to spare"
        )
    if math.isfinite(bound.time_s) and start.late_s <= bound.time_s * _CLOSE:
        return f"no assignment is sooner, for {cause_in_words(group, bound)}"
    if played.budget == 0:
        return "max_moves is 0"
    return f"no plan of at most {played.budget} drains it sooner by {terms.move_cost_s:g} s for each"


def _why_not_taken(played: Round) -> str:
    """The plan that was found does not pay."""
    problem, start, found = played.problem, played.start, played.found
    before, after = areas(problem, start, found)
    saved, spent = before - after, cost(problem, found)
    moves = f"{found.moves} move{'s' if found.moves > 1 else ''}"
    if saved <= spent:
        return f"{moves} would save {saved:.0f} record-seconds of lag and cost {spent:.0f}"
    share = (saved - spent) / before
    return (
        f"{moves} would save {share:.1%} of the lag area, less than min_gain ({problem.terms.min_gain:.1%})"
    )
