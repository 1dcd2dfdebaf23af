"""The verdict on an applied plan: it helped, it hurt, or the judge cannot tell.

The judge looks only at measured progress, never at what the planner believes. The plan has made a member worse off if
the member kept up before it and its lag at its own commits rises three times in a row under it (or fewer times by
more), while arrivals are unchanged and the group has not rebalanced. A plan hurts when its members together lose more
ground than they did before. lagwise takes such a plan back, whichever belief was wrong.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.lag.commits.at_commit import clock_error_records
from pipeline.planning import reasons
from pipeline.planning.effect.losses import LOSS, is_net_loss, is_watched, level, loss, noise
from pipeline.planning.effect.witnesses import COMMITS, is_open_question, sampled
from pipeline.planning.problem.measured import Measured
from pipeline.planning.progress import former_members_of
from pipeline.planning.state import Effect, GroupState, PlanState, Witness

_LOSS_BY_RISES = {3: LOSS, 2: 0.1}
"""That share, by the number of rises in a row: large losses show sooner (Wald, Sequential Analysis, 1947)."""
_GIVEN_UP_MS = 1_800_000
"""An effect that does not show within half an hour is not due to the plan alone."""


def observed(state: GroupState, seen: Measured, *, now_ms: int) -> GroupState:
    """The state, with the effect of its newest plan as far as this decision sees it."""
    plan = state.plan
    if plan is None or plan.takes_back is not None or plan.status == "open":
        return state
    if plan.effect is not None:
        # The effect of a needless plan may show later, as long as the group stays as the plan left it.
        is_watched = plan.status == "applied" and state.rebalanced_at_ms <= plan.status_at_ms
        return _sighted(state, plan, seen, now_ms=now_ms) if is_watched and is_open_question(plan) else state
    if plan.status != "applied":
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.NOT_APPLIED))
    if plan.is_unseen:
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.NOT_SEEN))
    if state.rebalanced_at_ms > plan.status_at_ms:
        return replace(state, plan=replace(plan, effect="cannot tell", effect_why=reasons.REBALANCED_SINCE))
    return _sighted(state, plan, seen, now_ms=now_ms)


def _sighted(state: GroupState, plan: PlanState, seen: Measured, *, now_ms: int) -> GroupState:
    """The state, with the newest commits of the members that its applied plan concerns, and the verdict on them."""
    back = former_members_of(seen.group, plan.undo)
    plan = replace(plan, witnesses=tuple(sampled(one, seen, plan, back) for one in plan.witnesses))
    return replace(state, plan=_judged(plan, seen, now_ms=now_ms))


def _judged(plan: PlanState, seen: Measured, *, now_ms: int) -> PlanState:
    found = _verdict(plan, seen, now_ms=now_ms)
    if found is None:
        return plan
    effect, why = found
    return replace(plan, effect=effect, effect_why=why, effect_at_ms=now_ms)


def _verdict(plan: PlanState, seen: Measured, *, now_ms: int) -> tuple[Effect, str] | None:
    """The plan's effect and the cause; None to leave its present one."""
    hurt = next((one for one in plan.witnesses if _loses_ground(one, plan)), None)
    if hurt is not None and is_net_loss(plan):
        return "hurt", reasons.loses_ground(hurt.member_id, hurt.lags)
    if plan.effect is not None:
        return None
    watched = list(filter(is_watched, plan.witnesses))
    if hurt is None and (benefit := _benefit(plan, seen, watched)):
        return benefit
    if plan.witnesses and not watched:
        is_changed = any(one.is_excused for one in plan.witnesses)
        return "cannot tell", reasons.ARRIVALS_CHANGED if is_changed else reasons.NOTHING_ARRIVES
    is_given_up = now_ms - plan.status_at_ms > _GIVEN_UP_MS
    return ("cannot tell", reasons.NO_EFFECT_SEEN) if is_given_up else None


def _benefit(plan: PlanState, seen: Measured, watched: Sequence[Witness]) -> tuple[Effect, str] | None:
    """The effect of a plan that hurt nobody; None until it shows in the commits of all watched members."""
    if not watched or any(len(one.lags) != COMMITS for one in watched):
        return None
    if plan.is_needless and not any(one.kept_up and one.lags[-1] > level(one) for one in watched):
        return "cannot tell", reasons.NOBODY_WAS_BEHIND
    left = int(seen.curable_backlog().sum())
    is_less = plan.drained_s is not None or left < plan.lag
    return ("helped", reasons.less_behind(plan.lag, left)) if is_less else None


def _loses_ground(one: Witness, plan: PlanState) -> bool:
    """Return whether a member that kept up has lost ground under the plan.

    Needless plans are judged by less (`_is_behind_by_needless`): lagwise learns from other plans, and the next one
    corrects them.
    """
    if not one.kept_up or one.is_excused or not one.lags[1:]:
        return False
    return _falls_behind(one) or (plan.is_needless and _is_behind_by_needless(one, plan))


def _falls_behind(one: Witness) -> bool:
    """Return whether lag has grown at each of the three newest commits, by more than noise."""
    # Clock errors can look like a small loss. A plan that only waits for the verdict needs no such margin.
    is_evident = one.lags[-1] - one.lags[0] > clock_error_records(one.arriving_then)
    is_full = len(one.lags) == COMMITS
    return bool(is_full and is_evident and _is_rising(one.lags) and loss(one) > noise(one))


def _is_behind_by_needless(one: Witness, plan: PlanState) -> bool:
    """Return whether the member fails to drain a backlog that a needless plan gave it.

    It fails if its backlog is no smaller at the last of four commits than at the first, or grows from its lag when
    the plan was applied: the more it grows, the fewer commits show it.
    """
    if min(one.lags[-2:]) <= level(one):
        return False
    is_full = len(one.lags) == COMMITS
    if is_full and min(one.lags) > level(one):
        return one.lags[-1] >= one.lags[0]
    lags, times_ms = (one.lag_then, *one.lags), (plan.status_at_ms, *one.commits_ms)
    if is_full:
        lags, times_ms = lags[-3:], times_ms[-3:]
    grown = (lags[-1] - lags[0]) * 1000 / max(times_ms[-1] - times_ms[0], 1)
    return _is_rising(lags) and grown > _LOSS_BY_RISES[len(lags) - 1] * one.arriving_then


def _is_rising(lags: Sequence[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(lags))
