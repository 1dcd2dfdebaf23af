"""Partitions that one member can give away, by weight; queried thousands of times for the heaviest within a limit."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np

from assignor.model.arrays import Floats, Int64s
from assignor.strategies.lag_sticky.problem import Problem

_MOST_PASSED_OVER = 64
"""Number of unreadable partitions after which a taker is assumed to be able to read none."""


class Giver:
    """The partitions of one member, heaviest first; those given away are skipped in nearly constant time."""

    def __init__(
        self, partitions: list[int], minus_weights: list[float], may_read: Callable[[int, int], bool]
    ) -> None:
        self._partitions = partitions
        self._minus_weights = minus_weights
        self._may_read = may_read
        # The next position that is left, from either side: paths shorten whenever they are walked.
        self._after = list(range(len(partitions) + 1))
        self._before = list(range(len(partitions) + 1))
        self._position = {p: i for i, p in enumerate(partitions)}
        self.n_left = len(partitions)
        """Number of partitions left."""

    @classmethod
    def of(cls, problem: Problem, partitions: Int64s, weight: Floats) -> "Giver":
        """The giver of these partitions."""
        # Negated, so that heaviest first is ascending, as `bisect` needs it.
        minus = -weight[partitions]
        order = np.argsort(minus, kind="stable")

        def may_read(partition: int, member: int) -> bool:
            return problem.may_read is None or bool(problem.may_read[problem.set_of[partition], member])

        return cls(partitions[order].tolist(), minus[order].tolist(), may_read)

    def heaviest(self, taker: int, below: float, most: float) -> int:
        """The heaviest that the taker may read, lighter than `below` and no heavier than `most`; -1 for none."""
        lightest_out = max(bisect_right(self._minus_weights, -below), bisect_left(self._minus_weights, -most))
        at = self._first_left(lightest_out)
        # With equal subscriptions the first look succeeds; a search of them all would be quadratic without.
        for _ in range(_MOST_PASSED_OVER):
            if at >= len(self._partitions):
                return -1
            if self._may_read(self._partitions[at], taker):
                return self._partitions[at]
            at = self._first_left(at + 1)
        return -1

    def lightest(self, taker: int, below: float) -> int:
        """The lightest that the taker may read, if it is lighter than `below`; -1 for none."""
        end = len(self._partitions)
        at = self._last_left(end)
        for _ in range(_MOST_PASSED_OVER):
            if at == 0 or -self._minus_weights[at - 1] >= below:
                return -1
            if self._may_read(self._partitions[at - 1], taker):
                return self._partitions[at - 1]
            at = self._last_left(at - 1)
        return -1

    def give(self, partition: int) -> None:
        """Take out a partition."""
        at = self._position[partition]
        self._after[at] = at + 1
        self._before[at + 1] = at
        self.n_left -= 1

    def _first_left(self, at: int) -> int:
        return _root(self._after, at)

    def _last_left(self, at: int) -> int:
        """One more than the position of the last that is left before `at`; 0 for none."""
        return _root(self._before, at)


def _root(link: list[int], at: int) -> int:
    # Path halving (Tarjan, van Leeuwen, Worst-case analysis of set union algorithms, 1984).
    while link[at] != at:
        link[at] = link[link[at]]
        at = link[at]
    return at
