"""Losses of the members that a plan concerns, by lag at their commits since the plan."""

from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.state import PlanState, Witness

LOSS = 0.05
"""Share of the arrivals that a member leaves unread when it loses ground; clocks and samples are not exact."""


def loss(one: Witness) -> float:
    """Growth of the member's lag at its commits in records/s; 0 if it falls, or if that is unknown."""
    if one.is_excused or not one.lags[1:]:
        return 0.0
    grown = one.lags[-1] - one.lags[0]
    return max(grown * 1000 / max(one.commits_ms[-1] - one.commits_ms[0], 1), 0.0)


def noise(one: Witness) -> float:
    """Growth of lag in records/s that clocks and samples may make of nothing."""
    return LOSS * one.arriving_then


def level(one: Witness) -> float:
    """Lag above which the member has a backlog of its own, on top of what came with its partitions."""
    return one.lag_then + BACKLOG_S * one.arriving_then


def is_watched(one: Witness) -> bool:
    """Return whether the member can show an effect: it is not excused and has records to read."""
    return not one.is_excused and one.arriving_then > 0


def is_put_behind(one: Witness) -> bool:
    """Return whether the member has, and does not drain, a backlog beyond what came with its partitions."""
    if one.is_excused or not one.lags or one.lags[-1] <= level(one):
        return False
    return not one.lags[1:] or one.lags[-1] >= one.lags[-2]


def is_net_loss(plan: PlanState) -> bool:
    """Return whether the plan's members together lose more ground than before it.

    Additional arrivals of a member are no loss: nearly busy members lose them under any assignment.
    If the plan was needless and none lost ground before it, one member with a backlog that it does not drain is enough.
    """
    watched = [one for one in plan.witnesses if not one.is_excused]
    before = sum(one.losing for one in watched)
    is_stuck = any(one.kept_up and is_put_behind(one) for one in watched)
    lost = sum(max(loss(one) - one.grown, 0.0) for one in watched)
    return (plan.is_needless and before == 0 and is_stuck) or lost > before
