"""Explanations for the operator why a group cannot be drained, or not sooner."""

import math

import numpy as np

from assignor.evaluation.drain.bound import BoundCause, LowerBound
from assignor.evaluation.drain.work import Work
from assignor.model.arrays import Bools, Floats
from assignor.model.group import Group

_MOST_NAMED = 3
_NO_TIME_S = 20.0
"""A group that drains sooner needs no advice: with commits every 5 s its lag is hardly ever smaller."""
_AGES_S = 30 * 86_400.0
"""A group that takes longer is not too small: its members hardly drain."""
_HARDLY = 0.1
"""A member hardly drains if it manages less than this part of its even share of what arrives."""
_ALL_STUCK = "its members hardly drain, are they stuck?"
_WHOLE = 100
"""From here on three digits have no decimal place."""
_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def time_in_words(time_s: float) -> str:
    """Format seconds with readable units, to three digits."""
    if math.isinf(time_s):
        return "never"
    for unit, size in _UNITS:
        if time_s >= 2 * size:
            return f"{time_s / size:.3g} {unit}"
    return f"{time_s:.3g} s"


def rate_in_words(records_s: float) -> str:
    """Records per second, to three digits or to the record."""
    return f"{records_s:,.0f} records/s" if records_s >= _WHOLE else f"{records_s:.3g} records/s"


def obstacles(group: Group, bound: LowerBound | None) -> tuple[str, ...]:
    """Return why no assignment ever drains the whole group; empty if one does, or if that is unknown."""
    if bound is None or group.capacity is None or math.isfinite(bound.time_s):
        return ()
    if bound.cause == BoundCause.NOT_TAKEN:
        name = group.topics.name(bound.partition)
        return (f"partition {name} has no owner, and no subscriber of its topic follows plans",)
    if bound.cause == BoundCause.FIXED:
        name = group.member_ids[bound.member]
        return (
            f"more arrives in the partitions fixed on member {name} than it drains: release some of them",
        )
    return tuple(_too_much(group, Work.of(group, group.capacity), bound))


def _too_much(group: Group, work: Work, bound: LowerBound) -> list[str]:
    together = _too_much_together(group, work, bound)
    # Where nobody drains, every partition is too much, and more partitions help nobody.
    alone = [] if any(words.endswith(_ALL_STUCK) for words in together) else _too_much_alone(group, work)
    if together or alone:
        return [*together, *alone]
    beside, remedy = (
        (" around what is fixed", "add members") if group.is_fixed().any() else ("", "add partitions")
    )
    return [f"the busiest partitions cannot be shared out{beside} so that no member gets too much: {remedy}"]


def cause_in_words(group: Group, bound: LowerBound) -> str:
    """Why no assignment drains the group before a finite bound, and what would help if that takes long."""
    time = time_in_words(bound.time_s)
    if bound.cause == BoundCause.PARTITION:
        name = group.topics.name(bound.partition)
        words = f"partition {name} alone takes {time} on the fastest member that may read it"
        return words + _advice(bound.time_s, "partitions")
    if bound.cause == BoundCause.BIN_PACKING:
        words = f"its largest partitions cannot be shared out to take less than {time}"
        return words + _advice(bound.time_s, "partitions")
    if bound.cause == BoundCause.FIXED:
        return f"the partitions fixed on member {group.member_ids[bound.member]} take {time}"
    if bound.cause == BoundCause.ALL_TRIED:
        which = "the partitions that are not fixed" if group.is_fixed().any() else "its partitions"
        words = f"every way to share out {which} takes {time} or more"
        return words + _advice(bound.time_s, "members, or more partitions")
    who, _ = _union(group, bound.sets)
    return f"{who} would take {time} with all work shared evenly" + _advice(bound.time_s, "members")


def _advice(time_s: float, more: str) -> str:
    if time_s <= _NO_TIME_S:
        return ""
    return f": {_ALL_STUCK}" if time_s > _AGES_S else f": add {more}"


def _too_much_together(group: Group, work: Work, bound: LowerBound) -> list[str]:
    """Members that together receive more than they can drain, however partitions are assigned."""
    everything = np.zeros(group.subscriptions.n_sets, np.bool_)
    everything[work.set_of] = True
    lags, rates = work.of_sets()
    for sets in (everything, bound.sets) if bound.cause == BoundCause.SHARES else (everything,):
        lag, rate = float(lags[sets].sum()), float(rates[sets].sum())
        who, members = _union(group, sets)
        capacity = work.capacity[members]
        total = float(capacity.sum())
        if rate > total or (rate == total and lag > 0):
            more = f" (receives {rate_in_words(rate - total)} more than it drains)" if rate > total else ""
            return [f"{who} runs at {_load_in_words(rate / total)}{more}: {_remedy(rate, capacity)}"]
    return []


def _load_in_words(load: float) -> str:
    return (
        "more than ten times its capacity"
        if load > 1 / _HARDLY
        else f"{math.ceil(100 * load)} % of its capacity"
    )


def _remedy(rate: float, capacity: Floats) -> str:
    """What helps members that together drain less than arrives at them."""
    n = len(capacity)
    stuck = int((capacity < _HARDLY * rate / n).sum())
    if stuck == n:
        return _ALL_STUCK
    if stuck > 0:
        return f"{stuck} of its {n} members hardly drain{', are they' if stuck > 1 else 's, is it'} stuck?"
    # The median member: one stuck or very fast member should not decide how many are missing.
    missing = math.floor((rate - float(capacity.sum())) / float(np.median(capacity))) + 1
    return f"add {missing} member{'s' if missing > 1 else ''}"


def _union(group: Group, sets: Bools) -> tuple[str, Bools]:
    """The members of some subscriber sets, in words and as a mask."""
    subscriptions = group.subscriptions
    members = subscriptions.in_any(sets)
    if np.array_equal(members, group.readers()):
        return "the group", members
    topics = np.nonzero(sets[subscriptions.set_of_topic] & (group.topics.counts > 0))[0]
    names = [group.topics.names[t] for t in topics[:_MOST_NAMED].tolist()]
    more = f" and {len(topics) - len(names)} more topics" if len(topics) > len(names) else ""
    return f"the part of the group that reads {', '.join(names)}{more}", members


def _too_much_alone(group: Group, work: Work) -> list[str]:
    """Partitions that receive more than the fastest of their readers can drain."""
    fastest = work.fastest()
    hopeless = np.nonzero((work.rate > fastest) | ((work.rate == fastest) & (work.lag > 0)))[0]
    needs = work.rate[hopeless] / fastest[hopeless]
    worst = hopeless[np.argsort(-needs, kind="stable")][:_MOST_NAMED]
    words = [
        f"partition {group.topics.name(int(work.partitions[i]))} alone "
        f"{_needs_in_words(float(work.rate[i]), float(fastest[i]))}: add partitions"
        for i in worst.tolist()
    ]
    more = len(hopeless) - len(words)
    return [*words, f"so do {more} more partitions"] if more > 0 else words


def _needs_in_words(rate: float, fastest: float) -> str:
    if rate <= fastest:
        return "needs more than one member"
    members = math.ceil(10 * rate / fastest) / 10
    return (
        f"needs {members:.1f} members (receives {rate_in_words(rate - fastest)} more than the fastest drains)"
    )
