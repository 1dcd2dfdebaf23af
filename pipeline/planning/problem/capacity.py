"""How fast each member drains: learned from backlogs, remembered by identity, optimistic where nothing was shown.

A member shows its capacity only while it has a backlog. Without one it shows how much arrives. So its capacity is
believed, and every belief is corrected by what the member shows after a plan has given it more:

* With a backlog it is as fast as it drains. While its rate still rises, that is a lower limit; and it is no evidence
  for a half-life of the averages after a rebalance, or after a plan has taken partitions from it.
* Without a backlog it is as fast as when it had one. That evidence ages: the belief moves towards optimism.
* A member that never had a backlog is like a typical one, or up to twice as fast as the rate that it keeps up with, the
  more that rate exceeds what others were seen to drain at most.

Example: a receives 1,000 records/s and drains 500; b receives 1,000 and keeps up. a is believed to drain 500, b
2,000: so moves from a to b help. If b then falls behind at 1,200, it is believed to drain 1,200.

Source: optimism in the face of uncertainty, as in Auer, Cesa-Bianchi, Fischer, Finite-time analysis of the
multiarmed bandit problem (2002): a wrong optimistic belief is disproved by acting on it, a wrong pessimistic one never.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assignor.model.group import LEAST_CAPACITY
from pipeline.planning.facts import MemberFacts
from pipeline.planning.state import MemberRate

BACKLOG_S = 10.0
"""Lag of so many seconds of draining is a backlog. Less is what lies between two commits of a member that keeps
up: a client commits every 5 s by default (auto.commit.interval.ms), and the batch looks some time later."""
_HEADROOM = 2.0
"""A member that never had a backlog, and keeps up with clearly more than others can, is believed to drain so many times
what it keeps up with."""
_CLEARLY_MORE = 1.25
_RISING = 1.1
"""A rate this many times that of the decision before is on its way up: moving averages take minutes."""
_STILL_RISING = 1.02
"""The same where more has been shown before, which is given up only for a rate that has come to its end: one with a
half-life of 120 s that rises by 2 % in 60 s is within 7 % of it, by 10 % only within 26 %."""
_TRUST_HALF_LIFE_MS = 6 * 3_600_000
"""Half of what separates an old rate from optimism is gone after so long: members recover, and get other machines."""
_FORGOTTEN_AFTER_MS = 7 * 86_400_000
_MOST_ABSENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one member does now."""

    rate: float
    """Records/s that it drains."""
    lag: float
    """Records of lag of what it holds."""
    is_settled: bool = True
    """The group was not rebalanced lately, and no plan has taken anything from it. Rates are averages by partition: at
    first they show how fast somebody else read what it has now, or how slowly it read the rest while it had to read
    more, and that would be believed for hours."""

    @property
    def is_backlogged(self) -> bool:
        """Whether it drains and does not keep up.

        One that never drained anything (rate 0) may be stuck, but so looks one that has only just started, and as slow
        as it looks everything would go to whoever commits first.
        """
        return self.rate > 0 and self.lag > BACKLOG_S * self.rate

    @property
    def is_evidence(self) -> bool:
        """Whether it shows its capacity."""
        return self.is_settled and self.is_backlogged


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How fast a member is taken to be."""

    capacity: float
    """Records/s."""
    is_shown: bool
    """It has shown it, now or before; otherwise it is optimism."""


def identities(members: Sequence[MemberFacts]) -> tuple[str, ...]:
    """What each member is remembered by: what outlives its restart and no other member has.

    Its instance id, or its client id, with its host if several members share it, or else its member id, which is
    another one after a restart.
    """
    clients = Counter(member.client_id for member in members)
    hosts = Counter((member.client_id, member.client_host) for member in members)
    return tuple(_identity(member, clients, hosts) for member in members)


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
    """What members have shown, this decision included.

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
    now = replace(known, rate=load.rate, seen_at_ms=now_ms)
    if not load.is_evidence:
        return now
    if known.shown is None:
        is_lower_limit = load.rate > _RISING * known.rate
    else:
        is_lower_limit = known.shown > load.rate > _STILL_RISING * known.rate
    if is_lower_limit:
        return now
    return replace(now, shown=load.rate, shown_at_ms=now_ms)


def believed(
    rates: Mapping[str, MemberRate], loads: Mapping[str, Load], *, now_ms: int
) -> list[Belief] | None:
    """How fast each member of `loads` is taken to be, in its order; None when nobody has ever shown anything.

    Args:
        rates: `learned` of this decision.
        loads: Members of the group by identity.
        now_ms: Time of the decision.
    """
    shown = [rate for name in loads if (rate := rates[name].shown) is not None]
    if not shown:
        return None
    # Where a single slow member shows its capacity, the others are not taken to be like it.
    kept_up = [load.rate for load in loads.values() if load.rate > 0 and not load.is_backlogged]
    typical = _Typical(
        shown=float(np.median(shown)), likely=max(float(np.median(some)) for some in (shown, kept_up) if some)
    )
    return [_belief(rates[name], load, typical, now_ms=now_ms) for name, load in loads.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Typical:
    """What the group says about a member that says nothing itself; records/s."""

    shown: float
    """Median of what members have shown."""
    likely: float
    """The same, or the median of what members without a backlog drain, if that is more."""


def _belief(rate: MemberRate, load: Load, typical: _Typical, *, now_ms: int) -> Belief:
    # With a backlog it does not keep up with what it drains: that says nothing of twice as much.
    keeps_up = load.is_settled or not load.is_backlogged
    optimistic = _optimistic(load.rate, typical) if keeps_up else max(load.rate, typical.likely)
    if rate.shown is None:
        return Belief(capacity=max(optimistic, LEAST_CAPACITY), is_shown=False)
    # The moving average of a member that got stuck halves for ever.
    shown = max(rate.shown, LEAST_CAPACITY)
    if load.is_backlogged:
        return Belief(capacity=shown if load.is_settled else max(shown, load.rate), is_shown=True)
    doubt = 1 - 0.5 ** ((now_ms - rate.shown_at_ms) / _TRUST_HALF_LIFE_MS)
    # It keeps up with what it drains now, whatever it has shown before.
    capacity = max(shown + doubt * max(optimistic - shown, 0.0), load.rate)
    return Belief(capacity=capacity, is_shown=True)


def _optimistic(rate: float, typical: _Typical) -> float:
    """The capacity of a member that keeps up with `rate`.

    With no more than others were seen to drain at most, it is taken to be like them: in a busy group all are near
    their limit. The more it exceeds them, the less they say about it.
    """
    share = min(max((rate / typical.shown - 1) / (_CLEARLY_MORE - 1), 0.0), 1.0)
    return max(typical.likely, rate * (1 + (_HEADROOM - 1) * share))
