"""The price of a move: how far a member falls behind its own speed after a plan has given it partitions.

A member that takes a partition may have to fill caches, restore state or open connections, and reads slower until then.
Its commits show this: it is further behind than before, and minutes later, with the same partitions, it has reached its
assumed speed. The records that it would have read in that time are the price, in seconds of arrivals in the partitions
that it got. A member that does not recover shows no price: the partition, or the member, is slow.

If moves are expensive, a plan pays only if its cause lasts. How long it will last is unknown, so the plan waits until
the cause has lasted for as long as its moves cost (ski rental; Karlin, Manasse, Rudolph, Sleator, Competitive snoopy
caching, 1988), and for twice as long as any lag in this group that disappeared by itself. If its cause passes all the
same, and the partitions go back, the next plan waits twice as long again. Cheap moves, and moves of unknown price, wait
for nothing.
"""

from dataclasses import replace

import numpy as np

from assignor.model.arrays import Bools, Int32s
from pipeline.lag.commits.at_commit import clock_error_records
from pipeline.planning import reasons
from pipeline.planning.problem.case import Case
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.problem.measured import Measured
from pipeline.planning.state import GroupState, Taker

_EXPENSIVE_S = 30.0
"""Moves that cost less are cheap: until a plan is confirmed and made, more time has passed."""
_TIMES_PRICE = 8
"""The way back costs as much as the way; a slow taker puts off what it was given, so about half of the price is seen;
and a taker with time to spare shows none."""
_TIMES_PASSED = 2
_FASTER = 1.25
"""A taker that is still behind has recovered when it reads this many times as fast as while it was slow."""
_ALIKE = 0.2
"""Arrivals that have changed by more than this share explain why a taker falls behind, or catches up."""
_WATCHED_MS = 180_000
"""A taker that is not behind within this time has paid nothing that is seen; of one that is, the next plan waits for
so long to learn whether it recovers."""
_GIVEN_UP_MS = 900_000
_LEAST_SHARE = 0.05
"""A taker that was given less of what it holds is slow for another reason."""
_MOST_S = _GIVEN_UP_MS / 1000
"""Nobody is watched for longer, so no price beyond is known."""
_LONGEST_PASSED_MS = 3_600_000
"""Ways back let a plan wait for no more than twice this time: some day the cause is one that lasts."""
_FORGOTTEN_MS = 86_400_000
"""Moves are tried again after a day: caches get other sizes."""


def with_takers(state: GroupState, seen: Measured, member: Int32s, *, now_ms: int) -> GroupState:
    """Return the state after a publication: lagwise watches every member that gets partitions.

    Args:
        state: Before.
        seen: The group as its commits show it.
        member: P entries: member of each partition under the plan.
        now_ms: Time of the decision.
    """
    group = seen.group
    moved = (member >= 0) & (group.owner >= 0) & (member != group.owner)
    takers = dict(state.takers)
    for number in np.unique(member[moved]).tolist():
        gets, name = moved & (member == number), group.member_ids[number]
        holds = member == number
        given, arriving = float(seen.arriving[gets].sum()), float(seen.arriving[holds].sum())
        known = takers.pop(name, None)
        # Lag that comes with partitions shows no slowness. What a watched member is behind already still counts.
        brought = seen.lag_of(holds if known is None else gets)
        if brought is None:
            # With that lag unknown, nothing tells slowness from it.
            continue
        if known is None:
            takers[name] = Taker(since_ms=now_ms, seen_ms=now_ms, given=given, arriving=arriving, lag=brought)
        else:
            lag = known.lag + brought
            given += known.given
            takers[name] = replace(
                known, since_ms=now_ms, seen_ms=now_ms, given=given, arriving=arriving, lag=lag
            )
    return replace(state, takers=takers)


def with_price(state: GroupState, case: Case) -> GroupState:
    """The state with what takers show of the price at this decision, and how long members have been behind."""
    state = _with_passed(state, case)
    if not state.takers:
        return state
    if state.plan is not None and state.plan.status == "open":
        # Before its partitions have moved, nobody has been slow for it.
        waiting = {name: replace(taker, seen_ms=case.now_ms) for name, taker in state.takers.items()}
        return replace(state, takers=waiting)
    left: dict[str, Taker] = {}
    prices_s = []
    for name, taker in state.takers.items():
        # A rebalance stops everybody, and has assigned partitions anew.
        is_disturbed = name not in case.group.member_ids or state.rebalanced_at_ms > taker.since_ms
        if is_disturbed or case.now_ms - taker.since_ms > _GIVEN_UP_MS:
            continue
        found = _watched(taker, case, name)
        if isinstance(found, Taker):
            left[name] = found
        elif found:
            prices_s.append(found)
    if prices_s:
        # Of several takers some have time to spare for it, so half of a known price stands.
        price_s = max(*prices_s, price_s_of(state, now_ms=case.now_ms) / 2)
        state = replace(state, move_price_s=price_s, priced_at_ms=case.now_ms)
    return replace(state, takers=left)


def price_s_of(state: GroupState, *, now_ms: int) -> float:
    """Return the cost of a move for its taker, in seconds of arrivals in the partition; 0 while unknown."""
    return state.move_price_s if now_ms - state.priced_at_ms < _FORGOTTEN_MS else 0.0


def is_expensive(state: GroupState, *, now_ms: int) -> bool:
    """Return whether moves are known to cost more than the time that plans wait anyway."""
    return price_s_of(state, now_ms=now_ms) >= _EXPENSIVE_S


def _watched(taker: Taker, case: Case, name: str) -> Taker | float | None:
    """The taker with what it shows now, or the price once it has recovered, s; None when it shows nothing."""
    seen = case.seen
    held = case.group.owner == case.group.member_ids.index(name)
    lag, drained, arriving = seen.lag_of(held), seen.drained_by(held), float(seen.arriving[held].sum())
    if lag is None or drained is None:
        # Unknown progress shows neither that it is slow nor that it has recovered.
        return replace(taker, seen_ms=case.now_ms)
    is_behind = lag - taker.lag > float(clock_error_records(arriving))
    is_faster = taker.slow_ms > 0 and drained >= _FASTER * taker.read * 1000 / taker.slow_ms
    is_alike = abs(arriving - taker.arriving) <= _ALIKE * taker.arriving
    if not is_alike and not (is_behind and is_faster):
        return None
    if is_behind and not is_faster:
        span_ms = case.now_ms - taker.seen_ms
        read = taker.read + drained * span_ms / 1000
        return replace(taker, slow_ms=taker.slow_ms + span_ms, read=read, seen_ms=case.now_ms)
    if not taker.slow_ms:
        # It was not behind at any commit, whatever it has paid. The time until it is behind counts.
        return taker if case.now_ms - taker.since_ms < _WATCHED_MS else None
    return _price_s(taker, case, name, arriving=arriving, drained=drained)


def _price_s(taker: Taker, case: Case, name: str, *, arriving: float, drained: float) -> float | None:
    """Reading lost while the taker was slow, in seconds of arrivals it was given; None if it was given little."""
    if taker.given < _LEAST_SHARE * taker.arriving:
        return None
    # Optimism is no evidence, and where partitions have costs, speed is not in records.
    belief = case.beliefs.get(name) if case.cost is None else None
    speed = max(drained, belief.capacity if belief is not None and belief.is_shown else arriving)
    price_s = max(speed * taker.slow_ms / 1000 - taker.read, 0.0) / max(taker.given, 1.0)
    return min(price_s, _MOST_S)


def _is_open_question(taker: Taker, *, now_ms: int) -> bool:
    """Whether the taker is behind now, and may recover; one that was given a backlog has to drain that first."""
    kept_up = taker.lag <= float(clock_error_records(taker.arriving))
    return kept_up and taker.slow_ms > 0 and now_ms - taker.since_ms < _WATCHED_MS


def _with_passed(state: GroupState, case: Case) -> GroupState:
    """The state with since when members are behind, and the longest such time that ended without a plan."""
    seen, group, plan = case.seen, case.group, state.plan
    before = state.behind_since
    since = {name: at_ms for name, at_ms in before.items() if name in group.member_ids}
    longest_ms, passed_at_ms = passed_ms_of(state, now_ms=case.now_ms), state.passed_at_ms
    for number, name in enumerate(group.member_ids):
        held = group.owner == number
        lag = seen.lag_of(held)
        if lag is None:
            # Unknown is not behind: the time begins anew.
            since.pop(name, None)
        elif lag > BACKLOG_S * float(seen.arriving[held].sum()):
            since.setdefault(name, case.now_ms)
        elif name in since:
            begun_ms = since.pop(name)
            is_relieved = plan is not None and name in plan.undo and plan.sent_at_ms >= begun_ms
            if not is_relieved and case.now_ms - begun_ms >= longest_ms:
                longest_ms, passed_at_ms = case.now_ms - begun_ms, case.now_ms
    return replace(
        state,
        behind_since_ms=since,
        behind_seen_ms=case.now_ms,
        passed_ms=longest_ms,
        passed_at_ms=passed_at_ms,
    )


def passed_ms_of(state: GroupState, *, now_ms: int) -> int:
    """Longest time for which a member stayed behind before it caught up without a plan; 0 where none has lately."""
    return state.passed_ms if now_ms - state.passed_at_ms < _FORGOTTEN_MS else 0


def on_way_back(state: GroupState, *, now_ms: int) -> GroupState:
    """The state once partitions go back from plans: where moves are expensive, their cause did not last long enough.

    It may have lasted as long as the plans had waited; the next one waits for twice as long. Further steps of the same
    way back change nothing.
    """
    if not is_expensive(state, now_ms=now_ms):
        return state
    if state.plan is not None and state.passed_at_ms == state.plan.published_at_ms:
        return replace(state, passed_at_ms=now_ms)
    waited_ms = min(_wait_ms(state, now_ms=now_ms), _LONGEST_PASSED_MS)
    return replace(state, passed_ms=waited_ms, passed_at_ms=now_ms)


def _wait_ms(state: GroupState, *, now_ms: int) -> int:
    """For how long the cause of a plan must have lasted."""
    price_ms = round(price_s_of(state, now_ms=now_ms) * 1000)
    return max(_TIMES_PRICE * price_ms, _TIMES_PASSED * passed_ms_of(state, now_ms=now_ms))


def cold_ms(state: GroupState, *, now_ms: int) -> int:
    """Time for which a member that gets partitions may read slowly; 0 where moves are cheap, or of unknown price."""
    return round(price_s_of(state, now_ms=now_ms) * 1000) if is_expensive(state, now_ms=now_ms) else 0


def why_waits(state: GroupState, case: Case, member: Int32s) -> str | None:
    """Why a plan waits for what its moves cost, as a guard's cause; None if it does not.

    Args:
        state: See `with_price`.
        case: The group.
        member: P entries: member of each partition under the plan.
    """
    group, now_ms = case.group, case.now_ms
    moved: Bools = (group.owner >= 0) & (member != group.owner)
    # What nobody reads waits for nothing.
    if not moved.any() or ((group.owner < 0) & (member >= 0)).any():
        return None
    if any(_is_open_question(one, now_ms=now_ms) for one in state.takers.values()):
        return reasons.PRICE_UNSEEN
    if not is_expensive(state, now_ms=now_ms):
        return None
    givers = {group.member_ids[number] for number in np.unique(group.owner[moved]).tolist()}
    since_ms = min((at_ms for name, at_ms in state.behind_since_ms.items() if name in givers), default=now_ms)
    lasted_ms, least_ms = now_ms - since_ms, _wait_ms(state, now_ms=now_ms)
    if lasted_ms >= least_ms:
        return None
    return reasons.guard_price(price_s_of(state, now_ms=now_ms), lasted_ms, least_ms)
