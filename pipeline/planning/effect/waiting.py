"""Plans that wait for the effect of the newest one."""

import math

from assignor.model.arrays import Bools
from pipeline.planning import reasons
from pipeline.planning.effect.losses import LOSS, is_net_loss, is_put_behind, is_watched, loss, noise
from pipeline.planning.guards import Guards
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.problem.measured import Measured
from pipeline.planning.state import GroupState, PlanState

_WORKS_S = 600.0
"""A verdict takes minutes. A member that catches up sooner than this needs no other plan."""


def why_waits(plan: PlanState | None, seen: Measured) -> str | None:
    """Why every plan waits for the effect of the newest one, as a guard's cause; None if none waits."""
    if plan is None:
        return None
    if is_pending(plan):
        return reasons.guard_effect(plan.epoch)
    return reasons.guard_effect_works(plan.epoch) if is_working(plan, seen) else None


def is_pending(plan: PlanState | None) -> bool:
    """Whether the next plan waits for the judge.

    It does if the plan is applied, its members lose more ground than before, and they have made fewer than three
    commits since; and, after two plans that are judged together, until the members that kept up have committed twice.
    """
    if plan is None or plan.status != "applied" or plan.effect is not None:
        return False
    kept_up = [one for one in plan.witnesses if one.kept_up]
    if plan.series > 1 and any(is_watched(one) and not one.lags[1:] for one in kept_up):
        return True
    if plan.is_needless and any(map(is_put_behind, kept_up)):
        return True
    return any(loss(one) > noise(one) for one in kept_up) and is_net_loss(plan)


def is_working(plan: PlanState, seen: Measured) -> bool:
    """Whether the newest plan is applied and without a verdict, and all members behind are on course to catch up soon.

    Another plan would save little, and if it did harm, lagwise would take both back together.
    """
    if plan.status != "applied" or plan.effect is not None or plan.takes_back is not None:
        return False
    if (seen.group.owner < 0).any():
        # Nobody catches up with a partition that nobody has.
        return False
    catching_up = [_catches_up_s(seen, seen.group.owner == number) for number in range(seen.group.n_members)]
    return all(seconds <= _WORKS_S for seconds in catching_up) and any(catching_up)


def _catches_up_s(seen: Measured, held: Bools) -> float:
    """Seconds until the member has drained its lag, by its commits; 0 if it keeps up, infinite if no progress shows."""
    lag, drained, arriving = seen.lag_of(held), seen.drained_by(held), float(seen.arriving[held].sum())
    if lag is None:
        return math.inf
    if lag <= BACKLOG_S * arriving:
        return 0.0
    if drained is None or drained <= (1 + LOSS) * arriving:
        return math.inf
    return lag / (drained - arriving)


def why_needless_waits(state: GroupState, guards: Guards, *, now_ms: int) -> str | None:
    """Why a needless plan waits, as a guard's cause; None if it does not.

    After a needless plan it waits for the verdict, each time twice as long; after one that hurt, much longer.
    """
    plan = state.plan
    if now_ms < state.needless_until_ms:
        return reasons.guard_effect_hurt(state.needless_until_ms - now_ms)
    if plan is None or not plan.is_needless or plan.takes_back is not None or plan.status != "applied":
        return None
    if plan.effect is None:
        return reasons.guard_effect_unseen(plan.epoch)
    pause_ms = min(guards.doubled_pause_ms(plan.series), guards.cooldown_max_ms)
    left_ms = plan.published_at_ms + pause_ms - now_ms
    return reasons.guard_effect_rests(plan.epoch, left_ms) if left_ms > 0 else None
