"""A group that has just taken a plan, and what its members commit then."""

from dataclasses import replace

from pipeline.planning.state import PlanState
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk

GUARDED = replace(RULES, guards=replace(NO_GUARDS, cooldown_ms=600_000, cooldown_max_ms=7_200_000))
BEFORE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}


def applied(
    *, arriving: tuple[float, ...] = (8, 8, 8, 8), draining: tuple[float, ...] = (10, 10, 10, 10)
) -> Walk:
    """Members have just taken a plan: partition 1 is with b, that kept up, and partition 3 with a, that did not."""
    group = Walk(
        held=BEFORE,
        lags=[900, 800, 10, 0],
        arrival_rates=[*arriving],
        drain_rates=[*draining],
        rules=GUARDED,
    )
    first = group.decide()
    assert {(move.partition, move.to_member) for move in first.moves} == {(1, "b"), (3, "a")}
    group.apply(first)
    assert effect(group.decide(after_s=60)) is None
    return group


def under_it(group: Walk, *of_b: int, of_a: int = 900) -> Decision:
    """The decision after commits a minute apart, at which members were so many records behind."""
    for lag in of_b:
        group.lags = [of_a, lag, 0, 0]
        decision = group.decide(after_s=60)
    return decision


LOSING = (300, 600, 900, 1_200)


def plan_of(group: Walk) -> PlanState:
    assert group.state.plan is not None
    return group.state.plan


def effect(decision: Decision) -> str | None:
    return decision.plan.effect if decision.plan is not None else None
