"""No assignment beats the bound: checked against every assignment of small groups."""

import math
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.report import report
from assignor.evaluation.drain.shares import shares_bound
from assignor.evaluation.drain.time import drain_s, lag_imbalance
from assignor.evaluation.drain.work import Work
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from tests.support.assignors.drain_groups import lagging_groups
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.groups import Description, descriptions, group, member

CAPACITIES = st.lists(st.sampled_from((4.0, 8.0, 16.0)), min_size=1, max_size=3)
TOPICS_READ = st.lists(st.sampled_from(("t", "u")), max_size=2, unique=True)


@given(
    capacities=CAPACITIES,
    subscribed=st.lists(TOPICS_READ, min_size=3, max_size=3),
    lags=st.lists(st.integers(0, 20), min_size=5, max_size=5),
    rates=st.lists(st.sampled_from((0.0, 0.5, 1.0, 4.0)), min_size=5, max_size=5),
)
def test_no_assignment_is_below_the_bound(
    capacities: list[float], subscribed: list[list[str]], lags: list[int], rates: list[float]
) -> None:
    members = [
        member(f"m{m}", *topics, capacity=capacity)
        for m, (capacity, topics) in enumerate(zip(capacities, subscribed, strict=False))
    ]
    built = group(
        {"t": 3, "u": 2},
        *members,
        lags={"t": lags[:3], "u": lags[3:]},
        rates={"t": rates[:3], "u": rates[3:]},
    )
    eligible = [built.subscriptions.of_topic(t).tolist() or [-1] for t in built.topics.topic_of]

    times = [drain_s(built, np.array(choice, np.int32)) for choice in product(*eligible)]

    bound_s = lower_bound_s(built)
    assert bound_s is not None
    assert all(time is not None and bound_s <= time + 1e-9 for time in times)


@given(built=lagging_groups(most_members=4))
def test_soonest_assignment_is_not_below_the_bound(built: Group) -> None:
    bound_s = lower_bound_s(built)

    assert bound_s is not None
    assert bound_s <= soonest_s(built) * (1 + 1e-9)


@given(
    readers=st.lists(st.sets(st.integers(0, 3), max_size=3), min_size=2, max_size=5),
    lags=st.lists(st.integers(0, 500), min_size=5, max_size=5),
    rates=st.lists(st.sampled_from((0.0, 0.0, 2.0, 6.0)), min_size=5, max_size=5),
    capacities=st.lists(st.sampled_from((5.0, 10.0, 20.0)), min_size=4, max_size=4),
)
def test_shares_bound_is_that_of_the_best_union_of_subscriber_sets(
    readers: list[set[int]], lags: list[int], rates: list[float], capacities: list[float]
) -> None:
    names = [f"t{t}" for t in range(len(readers))]
    members = [
        member(
            f"m{m}", *(name for name, who in zip(names, readers, strict=True) if m in who), capacity=capacity
        )
        for m, capacity in enumerate(capacities)
    ]
    built = group(
        dict.fromkeys(names, 1),
        *members,
        lags={name: [lag] for name, lag in zip(names, lags, strict=False)},
        rates={name: [rate] for name, rate in zip(names, rates, strict=False)},
    )
    work = Work.of(built, np.array(capacities))
    assume(len(work.partitions) > 0)

    bound_s, _ = shares_bound(work)

    read = [t for t, who in enumerate(readers) if who]
    unions = [union for size in range(1, len(read) + 1) for union in combinations(read, size)]
    best_s = max(_union_s(union, readers, lags, rates, capacities) for union in unions)
    assert bound_s == pytest.approx(best_s)


def _union_s(
    union: tuple[int, ...],
    readers: list[set[int]],
    lags: list[int],
    rates: list[float],
    capacities: list[float],
) -> float:
    lag = sum(lags[t] for t in union)
    spare = sum(capacities[m] for m in set().union(*(readers[t] for t in union)))
    spare -= sum(rates[t] for t in union)
    if spare > 0:
        return lag / spare
    return 0.0 if spare == 0 and lag == 0 else math.inf


@given(built=lagging_groups(), data=st.data())
def test_report_says_how_the_group_would_be_without_each_move(built: Group, data: st.DataObject) -> None:
    eligible = [built.subscriptions.of_topic(t).tolist() or [-1] for t in built.topics.topic_of]
    to = np.array([data.draw(st.sampled_from(readers)) for readers in eligible], np.int32)
    target = Assignment.complete(built, to)
    validity.check(built, target)

    for move in report(built, target).moves:
        if move.without_s is not None:
            back = to.copy()
            back[move.partition] = move.from_member
            saved = _area(built, back) - _area(built, to)
            assert move.without_s == pytest.approx(drain_s(built, back))
            assert move.saves_record_s == pytest.approx(saved, rel=1e-6, abs=1e-3)


def _area(built: Group, to: npt.NDArray[np.int32]) -> float:
    assert built.capacity is not None
    held = to >= 0
    lag = np.bincount(to[held], weights=built.lag[held], minlength=built.n_members)
    rate = np.bincount(to[held], weights=built.rate[held], minlength=built.n_members)
    model = CostModel(horizon_s=86_400.0, floor_s=0.0)
    return float(model.lag_area(lag, rate, built.capacity).sum())


@given(description=descriptions())
def test_imbalance_is_from_zero_to_one(description: Description) -> None:
    built = description.build()

    assert 0.0 <= lag_imbalance(built, built.owner) <= 1.0


@given(description=descriptions())
def test_more_lag_never_drains_sooner(description: Description) -> None:
    built = description.build()
    before = drain_s(built, built.owner)
    assume(before is not None)
    more = {topic: [records + 1 for records in lags] for topic, lags in description.lags.items()}
    longer = group(description.partitions, *description.members, lags=more, rates=description.rates)

    after = drain_s(longer, longer.owner)

    assert before is not None
    assert after is not None
    assert after >= before


@given(
    lag=st.floats(0, 1e9),
    rate=st.floats(0, 1e4),
    capacity=st.floats(1e-3, 1e4),
    floor_s=st.sampled_from((0.0, 20.0)),
)
def test_cost_of_one_member_is_that_of_the_arrays(
    lag: float, rate: float, capacity: float, floor_s: float
) -> None:
    """The search asks for single members thousands of times, without arrays."""
    model = CostModel(horizon_s=86_400.0, floor_s=floor_s)
    arrays = tuple(np.array([value]) for value in (lag, rate, capacity))
    figures = (lag, rate, capacity)

    assert model.drain_of_one_s(*figures) == model.finite_drain_s(*arrays)[0]
    assert model.load_of_one_s(*figures) == model.load_s(*arrays)[0]
    assert model.lag_area_of_one(*figures) == model.lag_area(*arrays)[0]
