"""Local search: relieve the slowest member, and when nothing helps it any more, the next slowest.

Several solutions are improved in step with each other, because the steps of many are evaluated in hardly more time than
one. What becomes of each is what would become of it alone.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from assignor.model.arrays import Bools
from assignor.strategies.lag_sticky.problem import Solution
from assignor.strategies.lag_sticky.search.neighbourhood import Improvement, Turn, best_improvements
from assignor.strategies.lag_sticky.search.state import SearchState

_MOST_STEPS = 200
_MOST_STUCK = 16


Visited: TypeAlias = tuple[int, bytes]
"""An assignment, by its `SearchState.digest`, the members that nothing relieves, and those that are overloaded."""


def improve(
    states: Sequence[SearchState], budget: int, overloaded: Sequence[Bools], optima: dict[Visited, Solution]
) -> list[Solution]:
    """Improve each solution step by step; each step lowers the largest load of the members it concerns.

    Steepest descent: the best step of the neighbourhood is taken, so it ends at a local optimum. The work of a step
    does not depend on the number of partitions.

    Args:
        states: The solutions, of one problem; they are changed.
        budget: Most moves.
        overloaded: Of each solution, the members that never drain, whatever is done; their turn comes last.
        optima: Where earlier runs with this budget passed, and what each of them led to; these add their own ways.

    Returns:
        The local optimum of each. Once a run meets the way of another it is that one's: the next steps depend on the
        assignment alone.
    """
    runs = [_Run(state, of_state) for state, of_state in zip(states, overloaded, strict=True)]
    passed: dict[Visited, _Run] = {}
    running = runs
    for _ in range(_MOST_STEPS):
        running = [run for run in running if not run.is_on_known_way(passed, optima)]
        turns = [(run, turn) for run in running if (turn := run.turn(budget)) is not None]
        if not turns:
            break
        steps = best_improvements([turn for _, turn in turns])
        running = [run for (run, turn), step in zip(turns, steps, strict=True) if run.take(turn, step)]
    ends = [run.end() for run in runs]
    problem = states[0].problem
    found = problem.evaluated([problem.changed(end.state.changes) for end in ends])
    for at, run in enumerate(runs):
        # The first of several runs along one way names its optimum, as if one were run after the other.
        found[at] = next((optima[here] for here in run.way if here in optima), found[at])
        optima.update(dict.fromkeys(run.way, found[at]))
    return found


class _Run:
    """One solution on its way to a local optimum."""

    def __init__(self, state: SearchState, overloaded: Bools) -> None:
        self.state = state
        self.way: list[Visited] = []
        self._overloaded = overloaded
        self._followed: _Run | None = None
        self._stuck = np.zeros(state.problem.n_members, np.bool_)
        if state.problem.fixed is not None:
            is_late = state.loads_s() > state.problem.options.floor_s
            self._stuck |= is_late & (state.candidates < 0).all(axis=1)
        # Members that have nothing to give say nothing about the others.
        self._most_stuck = _MOST_STUCK + int(self._stuck.sum())

    def is_on_known_way(self, passed: dict[Visited, "_Run"], optima: dict[Visited, Solution]) -> bool:
        """Whether another run has passed here, earlier or in this round; where it ends this one ends, too."""
        here = self.state.digest, self._stuck.tobytes() + self._overloaded.tobytes()
        self.way.append(here)
        other = passed.setdefault(here, self)
        if other.end() is not self:
            self._followed = other
        return here in optima or self._followed is not None

    def end(self) -> "_Run":
        """The run that goes the way to the end."""
        return self if self._followed is None else self._followed.end()

    def turn(self, budget: int) -> Turn | None:
        """The member to relieve next; None if nobody is late whom something may relieve."""
        loads_s = self.state.loads_s()
        late = (loads_s > self.state.problem.options.floor_s) & ~self._stuck
        others = late & ~self._overloaded
        most_s = np.inf
        if not others.any():
            if not late.any():
                return None
            # Overloaded members may hand partitions over, but must not undo what was gained for the others.
            others, most_s = late, float(loads_s[~self._overloaded].max(initial=0.0))
        slowest = int(np.where(others, loads_s, -1.0).argmax())
        return Turn(state=self.state, slow=slowest, budget=budget, most_s=most_s)

    def take(self, turn: Turn, step: Improvement | None) -> bool:
        """Take the step; whether the run goes on."""
        if step is not None:
            self.state.apply(step.transfers, step.moves)
            return True
        # Nothing relieves this member; a later step for another one would rarely change that.
        self._stuck[turn.slow] = True
        return int(self._stuck.sum()) < self._most_stuck
