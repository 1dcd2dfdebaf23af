"""Local search: relieve the slowest member, and when nothing helps it any more, the next slowest."""

from typing import TypeAlias

import numpy as np

from assignor.model.arrays import Bools, Floats
from assignor.strategies.lag_sticky.problem import Solution
from assignor.strategies.lag_sticky.search.neighbourhood import Neighbourhood
from assignor.strategies.lag_sticky.search.state import SearchState

_MOST_STEPS = 200
_MOST_STUCK = 16


Visited: TypeAlias = tuple[int, bytes]
"""An assignment, by its `SearchState.digest`, the members that nothing relieves, and those that are overloaded."""


def improve(state: SearchState, budget: int, overloaded: Bools, optima: dict[Visited, Solution]) -> Solution:
    """Improve the solution step by step; each step lowers the largest load of the members it concerns.

    Steepest descent: the best step of the neighbourhood is taken, so it ends at a local optimum. The work of a step
    does not depend on the number of partitions.

    Args:
        state: The solution; it is changed.
        budget: Most moves.
        overloaded: Members that never drain, whatever is done; their turn comes last.
        optima: Where earlier runs with this budget passed, and what each of them led to; this run adds its own way.

    Returns:
        The local optimum. Once a run meets the way of an earlier one it is that one's: the next steps depend on the
        assignment alone.
    """
    seen: list[Visited] = []
    floor_s = state.problem.options.floor_s
    stuck = np.zeros(state.problem.n_members, np.bool_)
    if state.problem.fixed is not None:
        stuck |= (state.loads_s() > floor_s) & (state.candidates < 0).all(axis=1)
    # Members that have nothing to give say nothing about the others.
    most_stuck = _MOST_STUCK + int(stuck.sum())
    of_overloaded = overloaded.tobytes()
    for _ in range(_MOST_STEPS):
        here = state.digest, stuck.tobytes() + of_overloaded
        if here in optima:
            optima.update(dict.fromkeys(seen, optima[here]))
            return optima[here]
        seen.append(here)
        loads_s, most_s = state.loads_s(), np.inf
        slowest = _latest(loads_s, stuck | overloaded, floor_s)
        if slowest < 0:
            # Overloaded members may hand partitions over, but must not undo what was gained for the others.
            slowest, most_s = _latest(loads_s, stuck, floor_s), float(loads_s[~overloaded].max(initial=0.0))
        if slowest < 0:
            break
        step = Neighbourhood(state, slowest, loads_s, budget, most_s=most_s).best()
        if step is not None:
            state.apply(step.transfers, step.moves)
            continue
        # Nothing relieves this member; a later step for another one would rarely change that.
        stuck[slowest] = True
        if int(stuck.sum()) >= most_stuck:
            break
    optimum = state.solution()
    optima.update(dict.fromkeys(seen, optimum))
    return optimum


def _latest(loads_s: Floats, left_out: Bools, floor_s: float) -> int:
    """The member of largest load but for those left out; -1 if no other is late."""
    of_others = np.where(left_out, -1.0, loads_s)
    latest = int(of_others.argmax())
    return latest if of_others[latest] > floor_s else -1
