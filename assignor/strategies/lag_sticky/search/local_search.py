"""Local search: relieve the slowest member, and when nothing helps it any more, the next slowest."""

import numpy as np

from assignor.model.arrays import Bools
from assignor.strategies.lag_sticky.search.neighbourhood import Neighbourhood
from assignor.strategies.lag_sticky.search.state import SearchState

_MOST_STEPS = 200
_MOST_STUCK = 16


def improve(state: SearchState, budget: int, overloaded: Bools) -> None:
    """Improve the solution step by step; each step lowers the largest load of the members it concerns.

    Steepest descent: the best step of the neighbourhood is taken, so it ends at a local optimum. The work of a step
    does not depend on the number of partitions.

    Args:
        state: The solution; it is changed.
        budget: Most moves.
        overloaded: Members that never drain, whatever is done; their turn comes last.
    """
    floor_s = state.problem.options.floor_s
    stuck = np.zeros(state.problem.n_members, np.bool_)
    if state.problem.fixed is not None:
        stuck |= (state.loads_s() > floor_s) & (state.candidates < 0).all(axis=1)
    # Members that have nothing to give say nothing about the others.
    most_stuck = _MOST_STUCK + int(stuck.sum())
    for _ in range(_MOST_STEPS):
        loads_s = state.loads_s()
        late = (loads_s > floor_s) & ~stuck
        if not late.any():
            return
        others = late & ~overloaded
        slowest = int(np.where(others if others.any() else late, loads_s, -1.0).argmax())
        # Overloaded members may hand partitions over, but must not undo what was gained for the others.
        most_s = np.inf if others.any() else float(loads_s[~overloaded].max(initial=0.0))
        step = Neighbourhood(state, slowest, loads_s, budget, most_s=most_s).best()
        if step is not None:
            state.apply(step.transfers, step.moves)
            continue
        # Nothing relieves this member; a later step for another one would rarely change that.
        stuck[slowest] = True
        if int(stuck.sum()) >= most_stuck:
            return
