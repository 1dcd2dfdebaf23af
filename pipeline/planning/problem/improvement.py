"""How much better a target is than what is: judged on all members, so that no single one hides the rest."""

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Floats, Int32s
from assignor.model.group import Group

_HORIZON_S = 86_400.0
"""Drain times beyond a day, and of members that never drain, are compared by the work that has arrived by then."""
_SAME = 1e-3
"""Loads that differ by less than this share are the same: rates are not known any better."""


def gain(group: Group, before: Int32s, after: Int32s) -> float:
    """Share by which the group is better off; negative if it is worse off, 0 if it is the same.

    Drain times are compared from the slowest member down, and the first pair that differs counts: a partition that
    no member can drain does not hide what the others gain. If that is no loss, the share of the lag area
    (record-seconds until drained) that is saved counts if it is larger, of the members whose partitions change and
    that drain, now or then: of one that never does, the area is as large as the horizon is long.

    Without capacities, members are compared by their lag instead.

    Args:
        group: With lag, rates, and capacities if they are known.
        before: Member of each partition now, -1 for none.
        after: The same under the target.
    """
    if ((before < 0) & (after >= 0)).any():
        # What nobody reads comes first, whatever it weighs.
        return 1.0
    lags = [sums_held(group.lag, member, group.n_members) for member in (before, after)]
    if group.capacity is None:
        return _first_difference(*lags)
    model = CostModel(horizon_s=_HORIZON_S, floor_s=0.0)
    rates = [sums_held(group.rate, member, group.n_members) for member in (before, after)]
    times = [model.finite_drain_s(lag, rate, group.capacity) for lag, rate in zip(lags, rates, strict=True)]
    slowest = _first_difference(*times)
    changed = before != after
    counts = np.zeros(group.n_members, np.bool_)
    counts[before[changed & (before >= 0)]] = True
    counts[after[changed & (after >= 0)]] = True
    counts &= np.minimum(*rates) < group.capacity
    areas = [
        float(model.lag_area(lag, rate, group.capacity)[counts].sum())
        for lag, rate in zip(lags, rates, strict=True)
    ]
    area = (areas[0] - areas[1]) / areas[0] if areas[0] > 0 else 0.0
    return max(slowest, area) if slowest >= 0 else slowest


def _first_difference(before: Floats, after: Floats) -> float:
    """Share by which the first value differs that does, both sorted from the largest down."""
    old, new = -np.sort(-before), -np.sort(-after)
    larger = np.maximum(old, new)
    differs = np.abs(old - new) > _SAME * larger
    if not differs.any():
        return 0.0
    first = int(differs.argmax())
    return float((old[first] - new[first]) / larger[first])
