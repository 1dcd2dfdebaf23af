"""What no member drains does not stop what can be drained, and no member that drains is given too much."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.evaluation.drain.hopeless import never_drains
from assignor.evaluation.drain.time import member_drain_s, sums_held
from assignor.model.arrays import Bools
from assignor.model.group import Group
from tests.support.assignors.drain_groups import FREE, OPTIONS, lag_sticky, lagging_groups, moved

FEW = settings(max_examples=60)


def with_hopeless(group: Group, which: list[int]) -> tuple[Group, Bools]:
    """The group with three times as much in some of its partitions as any member drains, and who holds them."""
    assert group.capacity is not None
    rate = group.rate.copy()
    chosen = [partition for partition in which if partition < group.n_partitions]
    rate[chosen] = 3 * group.capacity.max()
    holders = np.zeros(group.n_members, np.bool_)
    owners = group.owner[chosen]
    holders[owners[owners >= 0]] = True
    return replace(group, rate=rate), holders


@FEW
@given(
    group=lagging_groups(most_members=4),
    which=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    options=st.sampled_from([{}, FREE]),
)
def test_rest_is_planned_as_well_as_without_the_hopeless(
    group: Group, which: list[int], options: dict[str, float]
) -> None:
    """Without: on members that follow no plans, and weighing nothing."""
    assume((group.owner >= 0).all())
    mixed, holders = with_hopeless(group, which)
    aside = holders[group.owner]
    alone = replace(
        group,
        lag=np.where(aside, 0, group.lag),
        rate=np.where(aside, 0.0, group.rate),
        closed=holders,
    )

    target, without = lag_sticky(mixed, **options), lag_sticky(alone, **options)

    validity.check(mixed, target)
    times_s, times_without_s = (
        member_drain_s(one, to.member) for one, to in ((mixed, target), (alone, without))
    )
    assert times_s is not None
    assert times_without_s is not None
    floor_s = options.get("floor_s", 20.0)
    slowest_s, slowest_without_s = (
        float(times[~holders].max(initial=floor_s)) for times in (times_s, times_without_s)
    )
    held = np.bincount(without.member[without.member >= 0], minlength=group.n_members) > 0
    # Whoever holds nothing may take what falls behind beside a hopeless partition, for as long as that takes.
    assert not held[~holders].all() or slowest_s <= max(slowest_without_s, floor_s) * (1 + 1e-9)
    assert math.isinf(slowest_s) <= math.isinf(slowest_without_s)


@FEW
@given(
    group=lagging_groups(most_members=4),
    which=st.lists(st.integers(0, 8), max_size=3),
    busier=st.sampled_from((1.0, 3.0)),
    options=OPTIONS,
    max_moves=st.integers(0, 6),
)
def test_who_drains_without_the_plan_drains_with_it(
    group: Group, which: list[int], busier: float, options: dict[str, float], max_moves: int
) -> None:
    # What nobody owns has to go to somebody, even if that is too much.
    assume((group.owner >= 0).all())
    mixed, _ = with_hopeless(replace(group, rate=group.rate * busier), which)
    assert mixed.capacity is not None

    target = lag_sticky(mixed, max_moves=max_moves, **options)

    validity.check(mixed, target)
    assert moved(mixed, target) <= max_moves
    before, after = (
        never_drains(
            sums_held(mixed.lag, member, mixed.n_members),
            sums_held(mixed.rate, member, mixed.n_members),
            mixed.capacity,
        )
        for member in (mixed.owner, target.member)
    )
    assert not (after & ~before).any()
