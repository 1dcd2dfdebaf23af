"""A group as its commits show it."""

import numpy as np

from pipeline.planning.facts import GroupFacts, PartitionFacts
from pipeline.planning.problem.measured import Measured, measured
from pipeline.planning.state import FRESH
from tests.support.planning.alone import to_problem
from tests.support.planning.facts import NOW_MS, RULES


def seen_of(facts: GroupFacts, partitions: PartitionFacts) -> Measured:
    """What a decision sees of it."""
    problem, _ = to_problem(facts, partitions, RULES, FRESH, now_ms=NOW_MS)
    return measured(problem.group, partitions, problem.backlog, np.zeros_like(partitions.partition, np.bool_))
