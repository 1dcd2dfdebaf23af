"""Guards hold a better target back, for a while or for good: plans move few partitions, rarely, and for a reason.

Every rule is one that a production balancer has: uForwarder's limits per round and per partition (`fixed`),
uReplicator's confirmations of lag that is old and large, Burrow-like freshness, and the improvement band of ruskaof.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.planning import reasons
from pipeline.planning.state import GroupState

_HEADROOM = 0.02
"""Share of its capacity that a plan may take from the busiest member if the lag drains without a plan."""
LEAST_UNCLEAR = 2
"""Plans in a row without a clear effect that make the pause after a plan longer."""
LEAST_PAUSE_MS = 60_000
"""Without a pause after plans there is still one after plans that hurt, or whose effect cannot be told."""
_MOST_DOUBLINGS = 20
"""More make no difference: the longest pause is shorter."""
_EARLY_MS = 2_000
"""See `is_over`."""
_EARLY_SHARE = 0.05
"""The same as a share of the whole time."""
_SMALL_PLAN = 30
"""Moves that a plan of a strategy without a budget may make in any group, where a share would allow next to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Limits on plans that no operator has triggered."""

    min_improvement: float
    """Least gain (`improvement.gain`)."""
    confirmations: int
    """Decisions in a row that must find that the group, in the same state, needs a plan."""
    settle_ms: int
    """Minimum age of a generation."""
    min_lag: int
    """Records of lag of the whole group."""
    min_lag_ms: int
    """Minimum time by which the group is, or will be, behind (`behind.behind_s`)."""
    cooldown_ms: int
    """Pause after a plan."""
    cooldown_max_ms: int
    """Longest probation after plans that hurt."""
    moves_share: float
    """Most partitions that one plan moves, as a share of all; two may always move (see `Proposal.moves_whole`)."""
    partition_rest_ms: int
    """Time for which a moved partition stays where it is."""
    partition_moves_per_day: int
    pin: tuple[str, ...] = ()
    """Patterns of topics whose partitions stay where they are."""

    def doubled_pause_ms(self, times: int) -> int:
        """The pause after a plan, at least a minute, doubled this many times; without `cooldown_max_ms`."""
        return max(self.cooldown_ms, LEAST_PAUSE_MS) << min(times, _MOST_DOUBLINGS)

    def most_moves(self, n_partitions: int, *, has_budget: bool) -> int:
        """Return how many partitions a plan may move; more in a small group without a budget (`_SMALL_PLAN`)."""
        most = max(2, math.ceil(self.moves_share * n_partitions))
        return most if has_budget else max(most, _SMALL_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan in the figures that guards look at."""

    moves: int
    """Partitions taken from owners."""
    n_partitions: int
    has_budget: bool
    """True if the strategy got a budget of moves."""
    moves_whole: bool = False
    """The strategy's plan is the whole target (KIP-169), which `moves_share` does not limit; all other guards do."""
    gain: float
    """See `improvement.gain`."""
    evens_counts: bool = False
    """True if the plan is required whatever it gains: counts come closer to the options, and no member is hopeless."""
    lag: int
    """Records of the whole group."""
    lag_s: float
    """See `behind.behind_s`; nan if unknown."""
    headroom_lost: float | None = None
    """See `improvement.headroom_lost`."""


def guard_against(proposal: Proposal, guards: Guards, state: GroupState, *, now_ms: int) -> str | None:
    """The first guard that speaks against publishing a plan now, and its cause; None if none does.

    Args:
        proposal: What would be published.
        guards: The limits.
        state: The group's, with this decision's confirmation counted.
        now_ms: Time of the decision.
    """
    return next(_reasons(proposal, guards, state, now_ms=now_ms), None)


def _reasons(plan: Proposal, guards: Guards, state: GroupState, *, now_ms: int) -> Iterator[str]:
    most = guards.most_moves(plan.n_partitions, has_budget=plan.has_budget)
    if not has_settled(guards, state, now_ms=now_ms):
        yield reasons.guard_settle(state.generation, now_ms - state.since_ms, guards.settle_ms)
    if plan.lag < guards.min_lag:
        yield reasons.guard_lag(plan.lag, guards.min_lag)
    if guards.min_lag_ms > 0 and not plan.lag_s * 1000 >= guards.min_lag_ms:
        yield reasons.guard_lag_seconds(None if math.isnan(plan.lag_s) else plan.lag_s, guards.min_lag_ms)
    if plan.moves > most and not plan.moves_whole:
        yield reasons.guard_moves(plan.moves, plan.n_partitions, most, guards.moves_share)
    if plan.gain < guards.min_improvement and not plan.evens_counts:
        yield reasons.guard_improvement(guards.min_improvement)
    if plan.headroom_lost is not None and plan.headroom_lost > _HEADROOM:
        yield reasons.guard_headroom(plan.headroom_lost)
    yield from pauses(guards, state, now_ms=now_ms)
    if state.confirmations < guards.confirmations:
        yield reasons.guard_confirmations(state.confirmations, guards.confirmations)


def has_settled(guards: Guards, state: GroupState, *, now_ms: int) -> bool:
    """Whether the group's generation is old enough for a plan."""
    return is_over(state.since_ms + guards.settle_ms - now_ms, of_ms=guards.settle_ms)


def is_over(left_ms: int, *, of_ms: int) -> bool:
    """Whether a wait is over, but for what evaluations begin early or late.

    Otherwise every other wait would last until the evaluation after it, which comes a minute later and knows no better.
    """
    return left_ms <= min(_EARLY_MS, _EARLY_SHARE * of_ms)


def pauses(guards: Guards, state: GroupState, *, now_ms: int) -> Iterator[str]:
    """Yield the reasons against any plan for the group now."""
    if not is_over(state.cooldown_until_ms - now_ms, of_ms=guards.cooldown_ms):
        unclear = state.unclear if state.unclear >= LEAST_UNCLEAR else 0
        yield reasons.guard_cooldown(state.cooldown_until_ms - now_ms, guards.cooldown_ms, unclear)
    if now_ms < state.probation_until_ms:
        yield reasons.guard_probation(state.probation_until_ms - now_ms, state.hurts)
