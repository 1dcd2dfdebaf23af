"""The state that a decision leaves for the next one."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from assignor.model.arrays import Bools
from assignor.protocol.commands import Orders
from pipeline.lag.commits.at_commit import clock_error_records
from pipeline.planning import reasons
from pipeline.planning.effect.price import with_takers
from pipeline.planning.effect.way_back import goes_home, home_after, takes_back
from pipeline.planning.effect.witnesses import watched
from pipeline.planning.facts import is_new
from pipeline.planning.guards import LEAST_PAUSE_MS, LEAST_UNCLEAR, Guards
from pipeline.planning.problem.fixed import DAY_MS
from pipeline.planning.problem.measured import Measured
from pipeline.planning.progress import PlanProgress, left_of
from pipeline.planning.record import ranges_of
from pipeline.planning.state import GroupState, PlanState, partition_key
from pipeline.planning.values import Move, Publication, Target

_LEFT = 0.05
"""A backlog is gone when only this share of it is left, or what clocks may make of nothing."""
_FIRST_PROBATION = 10
"""Pauses after a plan that the first probation lasts."""
_RELIEF_PROBATION = 3
"""The same after a plan that relieved a member which was behind: that one still needs a plan, without the partitions
that rest."""
_NEEDLESS_PROBATION = 120
"""The same for needless plans, after one that hurt: without them no member would be behind."""
_RESTS = 3
"""Partitions of a plan that hurt rest for this many probations, even if the group's own is a short one."""
_UNCLEAR = (reasons.ARRIVALS_CHANGED, reasons.NO_EFFECT_SEEN)
"""Why the judge cannot tell the effect of a plan that members have applied while they were behind."""
_MOST_UNCLEAR = 4
"""Such plans in a row that lengthen the pause after a plan: to half an hour at the defaults."""
_FORGIVEN_MS = 86_400_000
"""A group is on its first probation again a day after a plan hurt it."""
_SILENT_FOR_MS = 3_600_000
"""After so long a member that did not answer is given another chance."""


def on_orders(state: GroupState, orders: Orders | None, *, now_ms: int) -> GroupState:
    """Return the state after the operator's newest resume: it ends a probation and forgets the plans that hurt.

    A resume takes effect once.
    """
    resumed_at_ms = orders.resumed_at_ms if orders is not None else None
    if resumed_at_ms is None or not is_new(resumed_at_ms, answered_ms=state.resumed_at_ms, now_ms=now_ms):
        return state
    return replace(
        state,
        resumed_at_ms=resumed_at_ms,
        probation_until_ms=0,
        needless_until_ms=0,
        hurts=0,
        unclear=0,
        rests_until_ms={},
    )


def on_pause(state: GroupState, *, unseen_ms: int, now_ms: int) -> GroupState:
    """The state without what has lasted since before a pause between decisions, and confirmations of before it.

    During a pause lagwise does not observe the group: neither its need for a plan, its calm and its members' progress,
    nor the effect of its plan.
    """
    if now_ms - state.behind_seen_ms <= unseen_ms:
        return state
    rates = {
        name: replace(rate, still_since_ms=0) if rate.still_since_ms else rate
        for name, rate in state.rates.items()
    }
    plan = replace(state.plan, is_unseen=True) if state.plan is not None else None
    return replace(
        state,
        base_hash=None,
        confirmations=0,
        calm_since_ms=0,
        rates=rates,
        takers={},
        behind_since_ms={},
        plan=plan,
    )


def on_confirmed(state: GroupState, base_hash: str | None) -> GroupState:
    """Return the state after an evaluation; `base_hash` is that of a group that needs a plan, None if it needs none."""
    if base_hash is None:
        if state.base_hash is None and state.confirmations == 0:
            return state
        return replace(state, base_hash=None, confirmations=0)
    so_far = state.confirmations if base_hash == state.base_hash else 0
    return replace(state, base_hash=base_hash, confirmations=so_far + 1)


def on_answers(
    state: GroupState, *, silent: Collection[str], answered: Collection[str], now_ms: int
) -> GroupState:
    """The state with these members known to be silent, and those that have answered no longer."""
    known = {
        member_id: since_ms
        for member_id, since_ms in state.silent_since_ms.items()
        if member_id not in answered and now_ms - since_ms < _SILENT_FOR_MS
    }
    return replace(state, silent_since_ms=dict.fromkeys(silent, now_ms) | known)


def on_observed(
    state: GroupState, plan: PlanState, progress: PlanProgress | None, seen: Measured, *, now_ms: int
) -> GroupState:
    """The state with what became of its plan; a partition that the plan did not move need not cool down."""
    before, plan = state.plan, _drained(plan, seen, now_ms=now_ms)
    state = _calm(replace(state, plan=plan), seen, now_ms=now_ms)
    if before is None or before.status != "open" or plan.status in {"open", "applied"}:
        return state
    return replace(state, moved_at_ms=_without_unmade(state, plan, progress))


def _calm(state: GroupState, seen: Measured, *, now_ms: int) -> GroupState:
    """Return the state with the time since which nothing curable has been behind (`on_pause` ends it, too)."""
    if seen.is_old.any() or float(seen.curable_backlog().sum()) > clock_error_records(
        float(seen.arriving.sum())
    ):
        return replace(state, calm_since_ms=0)
    return replace(state, calm_since_ms=state.calm_since_ms or now_ms)


def _without_unmade(
    state: GroupState, plan: PlanState, progress: PlanProgress | None
) -> dict[str, tuple[int, ...]]:
    left = progress.left() if progress is not None else frozenset()
    moved = {
        name: times
        if plan.status == "partly" and name not in left
        else tuple(at_ms for at_ms in times if at_ms != plan.published_at_ms)
        for name, times in state.moved_at_ms.items()
    }
    return {name: times for name, times in moved.items() if times}


def on_resent(
    state: GroupState, plan: PlanState, published: Publication, seen: Measured, *, done: int
) -> GroupState:
    """Return the state after its plan is published again, for the present group.

    An open plan gets more time only if a partition has moved since its last publication; otherwise a plan without
    progress would be published forever. A plan that had ended begins anew: what it does now is another question than
    what it did before, and members that get partitions again are watched again.

    Args:
        state: Before the publication.
        plan: Plan of the state.
        published: The same target, for the present group.
        seen: The group as its commits show it.
        done: Moves already made.
    """
    target, sent = published.target, published.sent
    begins_anew = plan.status != "open" and bool(target.moves)
    if begins_anew:
        state = with_takers(state, seen, target.assignment.member, now_ms=published.at_ms)
        plan = _begun_anew(state, plan, published, seen)
    else:
        has_moved = plan.status != "open" or plan.done > plan.done_then
        plan = replace(
            plan,
            epoch=sent.epoch,
            base_generation=published.generation,
            sent_at_ms=published.at_ms,
            revoked=target.revoked,
            receivers=target.receivers,
            migration=sent.migration,
            approved_by=published.approved_by or plan.approved_by,
            valid_until_ms=sent.valid_until_ms if has_moved else plan.valid_until_ms,
            status="open",
            why=None,
            witnesses=tuple(replace(one, commits_ms=(), lags=()) for one in plan.witnesses),
        )
    return replace(state, plan=replace(plan, moves=done + len(target.moves), done=done, done_then=done))


def _begun_anew(state: GroupState, plan: PlanState, published: Publication, seen: Measured) -> PlanState:
    """The plan that had ended, judged from now on as a plan of its own."""
    # A rebalance lies in between, so it is compared with the group as it is now, and with no plan before it.
    anew = _begun(state, published, seen, before=None)
    return replace(
        anew,
        approved_by=published.approved_by or plan.approved_by,
        is_adopted=plan.is_adopted,
        is_dropped=plan.is_dropped,
        # Right after a rebalance lag looks small: a plan that relieved a member then still does.
        is_needless=plan.is_needless and anew.is_needless,
        takes_back=plan.takes_back,
    )


def on_published(state: GroupState, published: Publication, seen: Measured, guards: Guards) -> GroupState:
    """The state once a new plan has been published: the group cools down."""
    target, now_ms, group = published.target, published.at_ms, seen.group
    plan = _begun(state, published, seen, before=state.plan)
    undoes = takes_back(state.plan, group, target)
    # Where the group was is no target that it is brought back to.
    plan = replace(plan, takes_back=undoes, is_dropped=undoes is not None)
    return replace(
        with_takers(state, seen, target.assignment.member, now_ms=now_ms),
        confirmations=0,
        base_hash=None,
        cooldown_until_ms=now_ms + guards.cooldown_ms,
        home=home_after(state, group, target, takes_back=undoes is not None),
        moved_at_ms=_moved(state, target.moves, now_ms=now_ms),
        rests_until_ms=_rests(state, target.moves if undoes is not None else (), guards, now_ms=now_ms),
        plan=plan,
    )


def _begun(
    state: GroupState, published: Publication, seen: Measured, *, before: PlanState | None
) -> PlanState:
    """The plan at its first publication; `before` is the plan that it may be judged with (`watched`)."""
    target, sent, now_ms, group = published.target, published.sent, published.at_ms, seen.group
    backlog, drains = seen.curable_backlog(), _set_out_to_drain(seen, target)
    plan = PlanState(
        epoch=sent.epoch,
        base_generation=published.generation,
        target=target.by_member,
        revoked=target.revoked,
        receivers=target.receivers,
        unassigned=target.unassigned,
        moves=len(target.moves),
        published_at_ms=now_ms,
        sent_at_ms=now_ms,
        valid_until_ms=sent.valid_until_ms,
        lag=int(backlog.sum()),
        drains=ranges_of(group, drains),
        drains_lag=int(backlog[drains].sum()),
        drain_s=target.figures.drain_s_after,
        migration=sent.migration,
        approved_by=published.approved_by,
        undo=target.revoked,
        status_at_ms=now_ms,
    )
    plan = watched(seen, before, plan)
    return replace(plan, is_needless=plan.is_needless and not goes_home(state, group, target))


def on_judged(state: GroupState, guards: Guards, *, now_ms: int) -> GroupState:
    """The state once the effect of its plan has been seen at this decision: on probation after one that hurt."""
    plan = state.plan
    if plan is None or plan.effect is None or plan.effect_at_ms != now_ms:
        return state
    if plan.effect == "helped":
        return replace(state, hurts=max(state.hurts - 1, 0), unclear=0)
    if plan.effect == "cannot tell":
        return _after_unclear(state, guards, now_ms=now_ms) if plan.effect_why in _UNCLEAR else state
    hurts = state.hurts + 1 if now_ms - state.hurt_at_ms < _FORGIVEN_MS else 1
    first = _RELIEF_PROBATION if plan.relieves else _FIRST_PROBATION
    needless_ms = _probation_ms(_NEEDLESS_PROBATION, hurts, guards) if plan.is_needless else 0
    return replace(
        state,
        plan=replace(plan, is_dropped=True),
        # What was proposed before the verdict is not published past it.
        waiting=None,
        hurts=hurts,
        unclear=0,
        hurt_at_ms=now_ms,
        probation_until_ms=now_ms + _probation_ms(first, hurts, guards),
        needless_until_ms=max(state.needless_until_ms, now_ms + needless_ms),
    )


def _after_unclear(state: GroupState, guards: Guards, *, now_ms: int) -> GroupState:
    """The state after a plan without a clear effect: from the second in a row on, each doubles the pause.

    Where the load moves on before a plan can help, plans cost their moves and gain nothing.
    """
    unclear = min(state.unclear + 1, _MOST_UNCLEAR)
    if unclear < LEAST_UNCLEAR:
        return replace(state, unclear=unclear)
    until_ms = now_ms + guards.doubled_pause_ms(unclear)
    return replace(state, unclear=unclear, cooldown_until_ms=max(state.cooldown_until_ms, until_ms))


def _probation_ms(first: int, hurts: int, guards: Guards) -> int:
    """How long a probation lasts after so many plans that hurt, if the first one lasts `first` pauses after a plan."""
    # Without a pause after plans there is still one after a plan that hurt.
    longest_ms = max(guards.cooldown_max_ms, LEAST_PAUSE_MS)
    return min(first * guards.doubled_pause_ms(hurts - 1), longest_ms)


def _set_out_to_drain(seen: Measured, target: Target) -> Bools:
    """P entries: curable partitions of the members that the target takes something from, and those that nobody has."""
    group, member = seen.group, target.assignment.member
    owner = group.owner
    relieved = np.zeros(group.n_members + 1, np.bool_)
    # The last entry is that of nobody, which is owner -1.
    relieved[owner[owner != member]] = True
    return relieved[owner] & seen.curable()


def _drained(plan: PlanState, seen: Measured, *, now_ms: int) -> PlanState:
    """The plan with the time until the backlog that it set out to drain was gone, wherever its partitions are now.

    A plan that was not applied has drained nothing.
    """
    if plan.drained_s is not None or plan.is_unseen or plan.status != "applied":
        return plan
    of, before = np.arange(seen.group.n_partitions), plan.lag
    if plan.drains is not None:
        of, before = left_of(seen.group.topics, plan.drains), plan.drains_lag
    left = float(seen.backlog[of].sum())
    if seen.is_old[of].any() or left > max(
        _LEFT * before, float(clock_error_records(float(seen.arriving[of].sum())))
    ):
        return plan
    return replace(plan, drained_s=(now_ms - plan.published_at_ms) / 1000)


def _rests(state: GroupState, moves: tuple[Move, ...], guards: Guards, *, now_ms: int) -> dict[str, int]:
    """Partitions that rest because a plan that moved them hurt; others are tried before they are moved again."""
    resting = {name: at_ms for name, at_ms in state.rests_until_ms.items() if at_ms > now_ms}
    if state.hurts == 0:
        # An operator has resumed the group since.
        return resting
    until_ms = now_ms + _RESTS * _probation_ms(_FIRST_PROBATION, state.hurts, guards)
    return resting | {partition_key(move.topic, move.partition): until_ms for move in moves}


def _moved(state: GroupState, moves: tuple[Move, ...], *, now_ms: int) -> dict[str, tuple[int, ...]]:
    """When each partition was moved within a day, these moves included."""
    moved = {
        name: tuple(at_ms for at_ms in times if now_ms - at_ms < DAY_MS)
        for name, times in state.moved_at_ms.items()
    }
    for move in moves:
        # A partition without an owner was revoked from nobody: it need not cool down.
        if move.from_member is not None:
            name = partition_key(move.topic, move.partition)
            moved[name] = (*moved.get(name, ()), now_ms)
    return {name: times for name, times in moved.items() if times}
