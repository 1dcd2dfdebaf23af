"""Speed at which each member drains: learned from its commits, remembered by identity, optimistic without evidence.

A member shows its capacity only while it has a backlog (`load`). Without one it shows how much arrives. So its capacity
is believed, and every belief is corrected by what the member shows after a plan has given it more:

* With a backlog it is as fast as it drains: the middle of the three newest speeds, since a pause within one of them, or
  a commit that came late, makes that one too low.
* Without a backlog it is as fast as when it had one. That evidence ages: the belief moves towards optimism.
* A member that never had a backlog is like a typical one, or up to twice as fast as the rate that it keeps up with, the
  more that rate exceeds what others were seen to drain at most.
* What it drained while its caches may have been cold (`price`) is no limit once it keeps up.
* A member that stands still shows nothing. After two minutes it is taken to drain nothing, until it reads again.
* While one member alone has shown a limit, nothing tells whether it is slow or all are like it. What members that have
  shown none are believed to drain then doubles in each ten minutes after the first ten (doubling, as in online search
  for an unknown bound), until somebody takes what is too much, or shows that it cannot: that limit then counts for as
  long as evidence does.
* Once somebody has been behind for ten minutes, guesses and old evidence about members without a backlog give way to
  optimism within tens of minutes: a trial costs a few minutes of lag, and a wrong guess costs as much again and again
  (ski rental; Karlin, Manasse, Rudolph, Sleator, Competitive snoopy caching, 1988).

Example: a receives 1,000 records/s and drains 500; b receives 1,000 and keeps up. a is believed to drain 500, b
2,000: so moves from a to b help. If b then falls behind at 1,200, it is believed to drain 1,200.

Source: optimism in the face of uncertainty, as in Auer, Cesa-Bianchi, Fischer, Finite-time analysis of the
multiarmed bandit problem (2002): a wrong optimistic belief is disproved by acting on it, a wrong pessimistic one never.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

import numpy as np

from assignor.model.group import LEAST_CAPACITY
from assignor.protocol.ranges import format_ranges
from pipeline.planning.facts import MemberFacts
from pipeline.planning.problem.load import Load
from pipeline.planning.readings import Spell
from pipeline.planning.state import MemberRate

_HEADROOM = 2.0
"""A member that never had a backlog, and keeps up with clearly more than others can, is believed to drain that many
times what it keeps up with."""
_CLEARLY_MORE = 1.25
_KEPT = 3
"""Newest speeds that are kept of a member: of three the middle one is right although one is not."""
_APART_MS = 20_000
"""Commits closer than this show the same speed again."""
_MOST_SPELLS = 4
_HABIT = 0.002
"""Seconds in a second: after hours of the same lag that is what is usual."""
_FRESH_MS = 90_000
"""An evaluation and a half by default: evidence that is not renewed by the next one is of before."""
_SAME_SPELL_MS = 1_800_000
"""Speeds that are this much older than the newest one are outdated."""
_OUTAGE_MS = 120_000
"""A member that has stood still for so long is not waited for: what has lasted lasts about as long again, and until a
plan is confirmed and made, minutes pass in which a shorter outage ends."""
_TRUST_HALF_LIFE_MS = 6 * 3_600_000
"""Half of what separates an old rate from optimism is gone after so long: members recover, and get other machines."""
_TRIED_AFTER_MS = 600_000
"""Younger lag may drain without a plan, or by the present plan."""
_TRIED_HALF_LIFE_MS = 600_000
"""The half-life once a member has been behind for longer than that."""
_DOUBLED_IN_MS = 600_000
"""Time in which what members without a limit are believed to drain doubles, while only one member has shown one."""
_LIMITS = 2
"""Members that have shown a limit; from this number on, it is taken to be everybody's."""
_MOST_TIMES = 16.0
"""A consumer is seldom idle for more than 95 % of its time; without a bound all members would look alike in the end."""
_FORGOTTEN_AFTER_MS = 7 * 86_400_000
_MOST_ABSENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Assumed speed of a member."""

    capacity: float
    """Records/s."""
    is_shown: bool
    """It has shown it, now or before; otherwise it is optimism."""


def identities(members: Sequence[MemberFacts]) -> tuple[str, ...]:
    """Return the identity of each member: one that survives its restart and is unique.

    Its instance id, or its client id, with its host if several members share it, or else its member id, which is
    another one after a restart.
    """
    clients = Counter(member.client_id for member in members)
    hosts = Counter((member.client_id, member.client_host) for member in members)
    names = [_identity(member, clients, hosts) for member in members]
    # Clients choose their ids: one's may be another's with its host.
    uses = Counter(names)
    return tuple(
        name if uses[name] == 1 else f"member {member.member_id}"
        for name, member in zip(names, members, strict=True)
    )


def _identity(
    member: MemberFacts, clients: Counter[str | None], hosts: Counter[tuple[str | None, str | None]]
) -> str:
    if member.instance_id is not None:
        return f"instance {member.instance_id}"
    if member.client_id and clients[member.client_id] == 1:
        return f"client {member.client_id}"
    if member.client_id and hosts[member.client_id, member.client_host] == 1:
        return f"client {member.client_id} {member.client_host}"
    return f"member {member.member_id}"


def learned(
    before: Mapping[str, MemberRate], loads: Mapping[str, Load], *, now_ms: int
) -> dict[str, MemberRate]:
    """Return the observed capacities of members, this decision included.

    Args:
        before: As the decision before left it.
        loads: Members of the group by identity.
        now_ms: Time of the decision.
    """
    absent = sorted(
        (
            (name, rate)
            for name, rate in before.items()
            if name not in loads and now_ms - rate.seen_at_ms < _FORGOTTEN_AFTER_MS
        ),
        key=lambda entry: (-entry[1].seen_at_ms, entry[0]),
    )
    kept = dict(absent[:_MOST_ABSENT])
    return kept | {name: _shown(before.get(name), load, now_ms=now_ms) for name, load in loads.items()}


def _shown(before: MemberRate | None, load: Load, *, now_ms: int) -> MemberRate:
    known = before or MemberRate(rate=load.rate, seen_at_ms=now_ms)
    # Not by `replace`, which takes several times as long: this is done for each member of thousands of groups.
    now = MemberRate(
        rate=load.rate,
        shown=known.shown,
        shown_at_ms=known.shown_at_ms,
        spells=known.spells,
        calm_s=_calm_s(known, load, now_ms=now_ms),
        committed_ms=load.committed_ms,
        still_since_ms=(known.still_since_ms or now_ms) if load.stands_still else 0,
        readings=known.readings,
        seen_at_ms=now_ms,
    )
    if load.shows is None or load.shows_at_ms - known.shown_at_ms < _APART_MS:
        return now
    spells = _spells(known.spells, load, load.shows)
    return replace(now, shown=spells[-1].speed, shown_at_ms=load.shows_at_ms, spells=spells)


def _calm_s(known: MemberRate, load: Load, *, now_ms: int) -> float | None:
    """The least that it has been behind at a commit, which habit raises by a few seconds in an hour."""
    if math.isnan(load.level_s):
        return known.calm_s
    if known.calm_s is None:
        return load.level_s
    return min(load.level_s, known.calm_s + _HABIT * (now_ms - known.seen_at_ms) / 1000)


def _spells(before: tuple[Spell, ...], load: Load, speed: float) -> tuple[Spell, ...]:
    """The spells with this speed in the last one, which is a new one with other partitions, and after a while."""
    held = {topic: format_ranges(numbers) for topic, numbers in sorted(load.held.items()) if numbers}
    last = before[-1] if before else None
    is_same = last is not None and load.shows_at_ms - last.at_ms < _SAME_SPELL_MS and last.held == held
    former = last if last is not None and is_same else Spell(held=held, speeds=(), at_ms=0)
    speeds = (*former.speeds, speed)[-_KEPT:]
    held_ms = (*former.held_ms, load.shows_at_ms - load.given_ms)[-_KEPT:]
    kept = before[:-1] if is_same else before
    return (*kept, Spell(held=held, speeds=speeds, at_ms=load.shows_at_ms, held_ms=held_ms))[-_MOST_SPELLS:]


def as_limits(
    rates: Mapping[str, MemberRate], loads: Mapping[str, Load], *, cold_ms: int
) -> dict[str, MemberRate]:
    """Return the rates with what members have shown with warm caches alone, but for those that are behind now.

    Cold speeds are better than none: if no member has shown another, the rates are as given, since with no capacity
    known, no partition would return to where it was before plans.

    Args:
        rates: As `learned` returns them.
        loads: Members of the group by identity.
        cold_ms: How long a member may read slowly after it got partitions (`price.cold_ms`).
    """
    given = {name: rates[name] for name in loads}
    limits = {name: _as_limit(given[name], load, cold_ms=cold_ms) for name, load in loads.items()}
    return limits if any(one.shown is not None for one in limits.values()) else given


def _as_limit(rate: MemberRate, load: Load, *, cold_ms: int) -> MemberRate:
    if not cold_ms or load.is_backlogged or rate.shown is None:
        return rate
    for spell in reversed(rate.spells):
        warm = spell.warm(cold_ms)
        if warm is not None:
            return replace(rate, shown=warm.speed, shown_at_ms=spell.at_ms)
    return replace(rate, shown=None, shown_at_ms=0)


def is_given_up(rate: MemberRate, *, now_ms: int) -> bool:
    """Return whether the member has stood still for so long that plans no longer wait for it."""
    return rate.still_since_ms > 0 and now_ms - rate.still_since_ms >= _OUTAGE_MS


def believed(
    rates: Mapping[str, MemberRate], loads: Mapping[str, Load], *, now_ms: int, behind_ms: int = 0
) -> list[Belief] | None:
    """Return the assumed speed of each member of `loads`, in its order; None if no member has shown any.

    Then only the members given up are known: the others are assumed to be equal, and to drain twice their observed
    rate.

    Args:
        rates: `learned` of this decision.
        loads: Members of the group by identity.
        now_ms: Time of the decision.
        behind_ms: How long some member has been behind; 0 while none is.
    """
    shown = [rate for name in loads if (rate := rates[name].shown) is not None]
    if not shown:
        return _beside_given_up(rates, loads, now_ms=now_ms)
    # Where a single slow member shows its capacity, the others are not taken to be like it.
    kept_up = [load.rate for load in loads.values() if load.rate > 0 and not load.is_backlogged]
    usual = float(np.median(shown))
    likely = max(float(np.median(some)) for some in (shown, kept_up) if some)
    if kept_up:
        # A member with little or nothing to read is no slower than busy ones are believed to be: it has more to spare.
        believed_of_half = median_low(_with_headroom(rate, usual, behind_ms=behind_ms) for rate in kept_up)
        likely = max(likely, believed_of_half)
    typical = _Typical(
        shown=usual,
        likely=likely,
        reads=any(load.rate > 0 and not load.stands_still for load in loads.values()),
        behind_ms=behind_ms,
        times=_times(rates, loads, now_ms=now_ms, behind_ms=behind_ms),
    )
    return [_belief(rates[name], load, typical, now_ms=now_ms) for name, load in loads.items()]


def _beside_given_up(
    rates: Mapping[str, MemberRate], loads: Mapping[str, Load], *, now_ms: int
) -> list[Belief] | None:
    gone = {name for name in loads if is_given_up(rates[name], now_ms=now_ms)}
    reading = [load.rate for name, load in loads.items() if name not in gone and load.rate > 0]
    if not gone or not reading:
        return None
    likely = _HEADROOM * float(np.median(reading))
    return [
        Belief(capacity=LEAST_CAPACITY, is_shown=True)
        if name in gone
        else Belief(capacity=max(likely, load.rate), is_shown=False)
        for name, load in loads.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Typical:
    """What the group says about a member that says nothing itself; records/s."""

    shown: float
    """Median of what members have shown."""
    likely: float
    """The same, or what half of the members without a backlog drain, or are believed to drain, if that is more."""
    reads: bool
    """Somebody reads: what stands still is not the whole group."""
    behind_ms: int
    """How long some member has been behind."""
    times: float
    """What members that have shown no limit are believed to drain, over what their group suggests."""


def _times(
    rates: Mapping[str, MemberRate], loads: Mapping[str, Load], *, now_ms: int, behind_ms: int
) -> float:
    """See `_Typical.times`: 1 once `_LIMITS` members have shown a limit."""
    fastest = max((load.rate for load in loads.values() if not load.is_backlogged), default=0.0)
    # Clearly below what others keep up with, it is the limit of a slow member.
    limits = sum(
        (shown := rates[name].shown) is not None
        and shown * _CLEARLY_MORE >= fastest
        and now_ms - rates[name].shown_at_ms < _TRUST_HALF_LIFE_MS
        for name in loads
    )
    if limits >= _LIMITS:
        return 1.0
    # Bounded before the power: two to the power of a week in doublings is no float.
    doublings = min(max(behind_ms - _TRIED_AFTER_MS, 0) / _DOUBLED_IN_MS, math.log2(_MOST_TIMES))
    return math.pow(2.0, doublings)


def _belief(rate: MemberRate, load: Load, typical: _Typical, *, now_ms: int) -> Belief:
    if is_given_up(rate, now_ms=now_ms) and typical.reads:
        return Belief(capacity=LEAST_CAPACITY, is_shown=True)
    # With a backlog it does not keep up with what it drains: that says nothing of twice as much.
    keeps_up = load.is_settled or not load.is_backlogged
    optimistic = _optimistic(load.rate, typical) if keeps_up else max(load.rate, typical.likely)
    if rate.shown is None:
        times = 1.0 if load.is_backlogged else typical.times
        return Belief(capacity=max(optimistic * times, LEAST_CAPACITY), is_shown=False)
    # The moving average of a member that got stuck halves for ever.
    shown = max(rate.shown, LEAST_CAPACITY)
    if load.is_backlogged:
        # What it has drained of late, idle minutes included, it can drain: a speed of before is no limit to that.
        is_fresh = load.is_settled and now_ms - rate.shown_at_ms <= _FRESH_MS
        return Belief(capacity=shown if is_fresh else max(shown, load.rate), is_shown=True)
    age_ms = now_ms - rate.shown_at_ms
    doubt = max(_decayed(age_ms, _TRUST_HALF_LIFE_MS), _impatience(min(age_ms, typical.behind_ms)))
    # It keeps up with what it drains now, whatever it has shown before.
    capacity = max(shown + doubt * max(optimistic - shown, 0.0), load.rate)
    return Belief(capacity=capacity, is_shown=True)


def _optimistic(rate: float, typical: _Typical) -> float:
    """The capacity of a member that keeps up with `rate`: no less than that of a typical one."""
    return max(typical.likely, _with_headroom(rate, typical.shown, behind_ms=typical.behind_ms))


def _with_headroom(rate: float, shown: float, *, behind_ms: int) -> float:
    """What a member that keeps up with `rate` is believed to drain.

    With no more than others were seen to drain at most, it is taken to be like them: in a busy group all are near
    their limit. The more it exceeds them, the less they say about it; and the longer somebody has been behind, the more
    there is to gain by trying.
    """
    exceeds = min(max((rate / shown - 1) / (_CLEARLY_MORE - 1), 0.0), 1.0)
    share = max(exceeds, _impatience(behind_ms))
    return rate * (1 + (_HEADROOM - 1) * share)


def _impatience(ms: int) -> float:
    """Share by which a guess gives way to optimism, while somebody has been behind for so long."""
    return _decayed(max(ms - _TRIED_AFTER_MS, 0), _TRIED_HALF_LIFE_MS)


def _decayed(ms: int, half_life_ms: int) -> float:
    """Share that is gone after this time."""
    return 1 - math.pow(0.5, ms / half_life_ms)
