"""Guards hold a better target back, for a while or for good: a plan moves little, seldom, and for a reason.

Every rule is one that a production balancer has: uForwarder's limits per round and per partition (`frozen`),
uReplicator's confirmations of lag that is old and large, Burrow-like freshness, and the improvement band of ruskaof.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from assignor.evaluation.drain.time import drain_s, summed
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.planning import reasons
from pipeline.planning.state import GroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Limits on plans that nobody asked for by hand."""

    min_improvement: float
    """Share by which the drain time, or else the largest member's lag, must fall."""
    confirmations: int
    """Decisions in a row that must find that the group, in the same state, needs a plan."""
    settle_ms: int
    """How long a generation must have lasted."""
    min_lag: int
    """Records of lag of the whole group."""
    min_lag_age_ms: int
    """Age of the oldest unread record."""
    cooldown_ms: int
    """Pause after a plan; twice as long after each that did not help."""
    cooldown_max_ms: int
    moves_share: float
    """Most partitions that one plan moves, as a share of all; two may always move."""
    partition_rest_ms: int
    """How long a moved partition stays where it is."""
    partition_moves_per_day: int
    pin: tuple[str, ...] = ()
    """Patterns of topics whose partitions stay where they are."""

    def most_moves(self, n_partitions: int) -> int:
        """Partitions that one plan may move."""
        return max(2, math.ceil(self.moves_share * n_partitions))


def guard_against(
    group: Group,
    target: Assignment,
    guards: Guards,
    state: GroupState,
    *,
    lag_age_s: float,
    now_ms: int,
) -> str | None:
    """The first guard that speaks against publishing the target now, and its cause; None if none does.

    Args:
        group: As it is.
        target: What would be published.
        guards: The limits.
        state: The group's, with this decision's confirmation counted.
        lag_age_s: Age of the oldest unread record, nan if unknown.
        now_ms: Time of the decision.
    """
    return next(_reasons(group, target, guards, state, lag_age_s=lag_age_s, now_ms=now_ms), None)


def _reasons(
    group: Group, target: Assignment, guards: Guards, state: GroupState, *, lag_age_s: float, now_ms: int
) -> Iterator[str]:
    moves, most = int((target.member != group.ownership.holder).sum()), guards.most_moves(group.n_partitions)
    lag = int(group.lag.sum())
    settled_ms = now_ms - state.since_ms
    if settled_ms < guards.settle_ms:
        yield reasons.guard_settle(state.generation, settled_ms, guards.settle_ms)
    if lag < guards.min_lag:
        yield reasons.guard_lag(lag, guards.min_lag)
    if guards.min_lag_age_ms > 0 and not lag_age_s * 1000 >= guards.min_lag_age_ms:
        yield reasons.guard_lag_age(None if math.isnan(lag_age_s) else lag_age_s, guards.min_lag_age_ms)
    if moves > most:
        yield reasons.guard_moves(moves, group.n_partitions, most, guards.moves_share)
    if not _improves(group, target, guards.min_improvement):
        yield reasons.guard_improvement(guards.min_improvement)
    if now_ms < state.cooldown_until_ms:
        yield reasons.guard_cooldown(state.cooldown_until_ms - now_ms, state.cooldown_ms)
    if state.confirmations < guards.confirmations:
        yield reasons.guard_confirmations(state.confirmations, guards.confirmations)


def _improves(group: Group, target: Assignment, least: float) -> bool:
    if bool(((group.owner < 0) & (target.member >= 0)).any()):
        # What nobody reads comes first, whatever it weighs.
        return True
    before, after = drain_s(group, group.owner), drain_s(group, target.member)
    if before is not None and after is not None and (math.isfinite(before) or math.isfinite(after)):
        return after <= (1 - least) * before
    largest_before, largest_after = (
        summed(group.lag[member >= 0], by=member[member >= 0], n=group.n_members).max(initial=0.0)
        for member in (group.owner, target.member)
    )
    return bool(largest_after <= (1 - least) * largest_before)
