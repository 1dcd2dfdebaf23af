"""Packing of many light partitions in rounds: numpy does a round at once, where a heap would take seconds."""

import numpy as np

from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.strategies.lag_sticky.problem import Problem

_MOST_ROUNDS = 4_000


def packed_in_rounds(
    problem: Problem, partitions: Int64s, weights: Floats, residual: Floats, count: Int64s
) -> Int32s | None:
    """Member of each partition, or None when some fit nowhere.

    One subscriber set after the other. In a round each reader on which the next partition fits gets one, the reader
    with the most residual capacity first. That is worst fit but for the order within a round.

    Args:
        problem: The group.
        partitions: What to pack, heaviest first.
        weights: Their weights.
        residual: Residual capacity of each member, `-inf` where nothing may be added; it is changed.
        count: Partitions of each member; it is changed.
    """
    member = np.full(len(partitions), -1, np.int32)
    sets = problem.set_of[partitions]
    rounds = 0
    for s in np.unique(sets).tolist():
        chosen = np.nonzero(sets == s)[0]
        readers = problem.group.subscriptions.set_members(int(s))
        at = 0
        while at < len(chosen):
            rounds += 1
            is_open = (residual[readers] >= weights[chosen[at]]) & (count[readers] < problem.cap)
            takers = readers[is_open]
            if len(takers) == 0 or rounds > _MOST_ROUNDS:
                return None
            takers = takers[np.argsort(-residual[takers], kind="stable")]
            block = chosen[at : at + len(takers)]
            takers = takers[: len(block)]
            member[block] = takers
            residual[takers] -= weights[block]
            count[takers] += 1
            at += len(block)
    return member
