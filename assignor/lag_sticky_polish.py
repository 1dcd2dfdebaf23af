"""Local search: relieve the slowest member, and when nothing helps it any more, the next slowest."""

import numpy as np

from assignor.lag_sticky_standing import Standing
from assignor.lag_sticky_steps import Options

_MOST_STEPS = 200
_MOST_STUCK = 16


def polish(standing: Standing, budget: int) -> None:
    """Improve the plan step by step; a step lowers the largest pressure of the members it concerns.

    The work of a step does not depend on the number of partitions.
    """
    stuck = np.zeros(standing.problem.n_members, np.bool_)
    for _ in range(_MOST_STEPS):
        pressures = standing.pressures()
        slow = int(np.where(stuck, -1.0, pressures).argmax())
        if stuck[slow] or pressures[slow] <= standing.problem.terms.floor_s:
            return
        step = Options(standing, slow, pressures, budget).best()
        if step is not None:
            standing.apply(step.transfers, step.moves)
            continue
        stuck[slow] = True
        if int(stuck.sum()) >= _MOST_STUCK:
            return
