"""One group alone: its decision and its problem, with the evidence of its own commits."""

from functools import partial

from pipeline.planning.asking import answered
from pipeline.planning.decide import deciding
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.problem.evidence import evidence
from pipeline.planning.problem.group import Problem, posed
from pipeline.planning.state import GroupState
from pipeline.planning.values import Decision, Published


def decide(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rules: Rules,
    published: Published | None,
    state: GroupState,
    *,
    now_ms: int,
) -> Decision:
    """The decision about the group (`deciding`)."""
    asking = deciding(facts, partitions, rules, published, state, now_ms=now_ms)
    return answered([asking], partial(evidence, now_ms=now_ms))[0]


def to_problem(
    facts: GroupFacts, partitions: PartitionFacts, rules: Rules, state: GroupState, *, now_ms: int
) -> tuple[Problem, GroupState]:
    """The group's problem, and its state with what members have shown by now (`posed`)."""
    asking = posed(facts, partitions, rules, state, cold_ms=0, now_ms=now_ms)
    return answered([asking], partial(evidence, now_ms=now_ms))[0]
