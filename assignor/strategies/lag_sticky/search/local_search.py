"""Local search: relieve the slowest member, and when nothing helps it any more, the next slowest."""

import numpy as np

from assignor.model.arrays import Bools
from assignor.strategies.lag_sticky.search.state import Standing
from assignor.strategies.lag_sticky.search.steps import Options

_MOST_STEPS = 200
_MOST_STUCK = 16


def polish(standing: Standing, budget: int, lost: Bools) -> None:
    """Improve the plan step by step; a step lowers the largest pressure of the members it concerns.

    The work of a step does not depend on the number of partitions.

    Args:
        standing: The plan; it is changed.
        budget: Most moves.
        lost: Members that are never through, whatever is done; their turn comes last.
    """
    floor_s = standing.problem.terms.floor_s
    stuck = np.zeros(standing.problem.n_members, np.bool_)
    for _ in range(_MOST_STEPS):
        pressures = standing.pressures()
        late = (pressures > floor_s) & ~stuck
        if not late.any():
            return
        others = late & ~lost
        slow = int(np.where(others if others.any() else late, pressures, -1.0).argmax())
        # What those that are never through get rid of may be a gift, but undoes no help for others.
        most_s = np.inf if others.any() else float(pressures[~lost].max(initial=0.0))
        step = Options(standing, slow, pressures, budget, most_s=most_s).best()
        if step is not None:
            standing.apply(step.transfers, step.moves)
            continue
        stuck[slow] = True
        if int(stuck.sum()) >= _MOST_STUCK:
            return
