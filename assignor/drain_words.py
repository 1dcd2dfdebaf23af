"""Why a group cannot be drained, or not sooner, in words for its operator."""

import math

import numpy as np

from assignor.arrays import Bools
from assignor.drain_bound import BoundCause, LowerBound
from assignor.drain_work import Work
from assignor.group import Group

_MOST_NAMED = 3
_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def time_in_words(time_s: float) -> str:
    """Seconds as people say them, to three digits."""
    if math.isinf(time_s):
        return "never"
    for unit, size in _UNITS:
        if time_s >= 2 * size:
            return f"{time_s / size:.3g} {unit}"
    return f"{time_s:.3g} s"


def obstacles(group: Group, bound: LowerBound | None) -> tuple[str, ...]:
    """Why no assignment ever drains the whole group; empty if one may, or if that is not known."""
    if bound is None or group.capacity is None or math.isfinite(bound.time_s):
        return ()
    work = Work.of(group, group.capacity)
    words = (*_too_much_together(group, work, bound), *_too_much_alone(group, work))
    return words or (
        "the busiest partitions cannot be shared out so that no member gets too much: add partitions",
    )


def cause_in_words(group: Group, bound: LowerBound) -> str:
    """Why no assignment drains the group before a bound that is finite."""
    time = time_in_words(bound.time_s)
    if bound.cause == BoundCause.PARTITION:
        name = group.topics.name(bound.pid)
        return f"partition {name} alone takes {time} on the fastest member that may read it: add partitions"
    if bound.cause == BoundCause.PIECES:
        return f"its largest partitions cannot be shared out to take less than {time}: add partitions"
    who, _ = _union(group, bound.sets)
    return f"{who} would take {time} with all work shared evenly: add members"


def _too_much_together(group: Group, work: Work, bound: LowerBound) -> list[str]:
    """Members that receive more than they can drain, whoever of them has what."""
    everything = np.zeros(group.subscriptions.n_sets, np.bool_)
    everything[work.set_of] = True
    lags, rates = work.of_sets()
    for sets in (everything, bound.sets) if bound.cause == BoundCause.SHARES else (everything,):
        lag, rate = lags[sets].sum(), rates[sets].sum()
        who, members = _union(group, sets)
        capacity = float(work.capacity[members].sum())
        if rate > capacity or (rate == capacity and lag > 0):
            typical = float(np.median(work.capacity[members]))
            missing = math.floor((rate - capacity) / typical) + 1
            share = f"{math.ceil(100 * rate / capacity)} % of its capacity"
            return [f"{who} runs at {share}: add {missing} member{'s' if missing > 1 else ''}"]
    return []


def _union(group: Group, sets: Bools) -> tuple[str, Bools]:
    """The members of some subscriber sets, in words and as a mask."""
    subscriptions = group.subscriptions
    members = np.zeros(group.n_members, np.bool_)
    members[subscriptions.members[np.repeat(sets, subscriptions.set_sizes())]] = True
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
        f"partition {group.topics.name(int(work.pid[i]))} alone needs "
        f"{math.ceil(10 * work.rate[i] / fastest[i]) / 10:.1f} members: add partitions"
        for i in worst.tolist()
    ]
    more = len(hopeless) - len(words)
    return [*words, f"so do {more} more partitions"] if more > 0 else words
