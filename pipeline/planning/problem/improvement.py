"""How much better a target is than what is: judged on all members, so that no single one hides the rest."""

import math

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.hopeless import hopeless, lost_members, never_drains
from assignor.evaluation.drain.time import member_drain_s, sums_held
from assignor.model.arrays import Bools, Floats, Int32s
from assignor.model.group import Group

NEVER_DRAINS = -math.inf
"""The gain of a target under which somebody never drains who does now."""
_HORIZON_S = 86_400.0
"""Drain times beyond a day, and of members that never drain, are compared by the work that has arrived by then."""
_FLOOR_S = 20.0
"""Nobody is late by less."""
_SOON_S = 600.0
"""Lag that is drained sooner goes by itself: until a plan is confirmed and applied, minutes have passed."""
_SAME = 1e-3
"""Loads that differ by less than this share are the same: rates are not known any better."""


def gain(group: Group, before: Int32s, after: Int32s) -> float:
    """Share by which the group is better off; negative if it is worse off, 0 if it is the same.

    Drain times are compared from the slowest member down, and the first pair that differs counts. If that is no loss,
    the share of the lag area (record-seconds until drained) that is saved counts if it is larger, of the members whose
    partitions change and that drain, now or then: of one that never does, the area is as large as the horizon is long.

    Members that hold a hopeless partition, which no member drains, are left out of both. What they can leave to others
    counts as the share that it is of what they leave unread, if nobody becomes the slowest by it.

    Whoever drains now and never does then makes the group worse off, whatever others gain, and so does lag that is put
    beside a hopeless partition.

    Without capacities, members are compared by their lag instead.

    Args:
        group: With lag, rates, and capacities if they are known.
        before: Member of each partition now, -1 for none.
        after: The same under the target.
    """
    # What nobody reads comes first, whatever it weighs.
    is_taken_in = bool(((before < 0) & (after >= 0)).any())
    lags = [sums_held(group.lag, member, group.n_members) for member in (before, after)]
    if group.capacity is None:
        return 1.0 if is_taken_in else _first_difference(*lags)
    capacity = group.capacity
    rates = [sums_held(group.rate, member, group.n_members) for member in (before, after)]
    never = [never_drains(lag, rate, capacity) for lag, rate in zip(lags, rates, strict=True)]
    # Who has nothing to read loses nothing by having too much.
    works = (lags[0] > 0) | (rates[0] > 0)
    if (works & never[1] & ~never[0]).any():
        return NEVER_DRAINS
    if is_taken_in:
        return 1.0
    model = CostModel(horizon_s=_HORIZON_S, floor_s=0.0)
    times = [model.finite_drain_s(lag, rate, capacity) for lag, rate in zip(lags, rates, strict=True)]
    curable = ~(lost_members(group, before, capacity) | lost_members(group, after, capacity))
    if _stuck(group, after, capacity) > _stuck(group, before, capacity):
        return NEVER_DRAINS
    saved = _relieved(group, before, rates, capacity)
    slowest = _first_difference(*(of_member[curable] for of_member in times))
    if slowest < 0:
        latest_s = max(float(times[0][curable].max(initial=0.0)), _FLOOR_S)
        is_slower = (times[1][curable & works] > latest_s * (1 + _SAME)).any()
        return saved if saved > 0 and not is_slower else slowest
    counts = _changed(group, before, after) & curable & (np.minimum(*rates) < capacity)
    areas = [
        float(model.lag_area(lag, rate, capacity)[counts].sum())
        for lag, rate in zip(lags, rates, strict=True)
    ]
    return max(slowest, _share_saved(*areas), saved)


def _changed(group: Group, before: Int32s, after: Int32s) -> Bools:
    """N entries: members whose partitions differ."""
    changed = before != after
    counts = np.zeros(group.n_members, np.bool_)
    counts[before[changed & (before >= 0)]] = True
    counts[after[changed & (after >= 0)]] = True
    return counts


def _share_saved(before: float, after: float) -> float:
    return (before - after) / before if before > 0 else 0.0


def _stuck(group: Group, member: Int32s, capacity: Floats) -> float:
    """Records of curable partitions whose members hold a hopeless one."""
    curable = ~hopeless(group, capacity) & (member >= 0)
    return float(group.lag[curable & lost_members(group, member, capacity)[member]].sum())


def _relieved(group: Group, before: Int32s, rates: list[Floats], capacity: Floats) -> float:
    """Share of the records/s that members with a hopeless partition leave unread now, which they read then."""
    lost = lost_members(group, before, capacity)
    unread = [float(np.maximum(rate - capacity, 0.0)[lost].sum()) for rate in rates]
    return _share_saved(*unread)


def headroom_lost(group: Group, before: Int32s, after: Int32s) -> float | None:
    """Share of its capacity by which the busiest member would have less to spare, where lag goes by itself.

    A backlog that is gone in minutes is gone by the time that a plan has been confirmed and applied; the busier member
    stays. None where the lag as assigned takes longer than `_SOON_S` or stays. Without capacities, how long it takes is
    not known, and the share is that of the arrivals of the busiest member.
    """
    times_s = member_drain_s(group, before)
    if times_s is None or group.capacity is None:
        arriving = [
            float(sums_held(group.rate, member, group.n_members).max(initial=0.0))
            for member in (before, after)
        ]
        return arriving[1] / arriving[0] - 1 if arriving[0] > 0 else None
    if not (times_s <= _SOON_S).all():
        return None
    busiest = [
        float((sums_held(group.rate, member, group.n_members) / group.capacity).max())
        for member in (before, after)
    ]
    return busiest[1] - busiest[0]


def _first_difference(before: Floats, after: Floats) -> float:
    """Share by which the first value differs that does, both sorted from the largest down."""
    old, new = -np.sort(-before), -np.sort(-after)
    larger = np.maximum(old, new)
    differs = np.abs(old - new) > _SAME * larger
    if not differs.any():
        return 0.0
    first = int(differs.argmax())
    return float((old[first] - new[first]) / larger[first])
