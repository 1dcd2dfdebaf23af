"""`lag-sticky` beside the best there is: of all assignments of small groups, and of what annealing finds in larger ones."""

import math
import statistics

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.model.group import Group
from tests.support.assignors.annealer import annealed_s
from tests.support.assignors.drain_groups import FREE, lag_sticky, owned, time_s
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.groups import group as build
from tests.support.assignors.groups import member


def _drawn(seed: int, *, heavy: bool) -> Group:
    """3 members, 9 partitions, owned by anybody."""
    random = np.random.default_rng(seed)
    lags = (random.pareto(1.1, 9) * 1000 + 1).astype(int) if heavy else random.integers(1, 1000, 9)
    owner = random.integers(0, 3, 9)
    return owned(*(lags[owner == m].tolist() for m in range(3)), capacity=100.0)


@pytest.mark.parametrize("max_moves", [3, 9])
@pytest.mark.parametrize("heavy", [True, False], ids=["heavy-tailed", "uniform"])
def test_plans_are_close_to_the_best_there_is(max_moves: int, heavy: bool) -> None:
    ratios, over_bound = [], []
    for seed in range(20):
        group = _drawn(seed, heavy=heavy)

        target = lag_sticky(group, max_moves=max_moves, **FREE)

        validity.check(group, target)
        best_s, bound_s = soonest_s(group, max_moves=max_moves), lower_bound_s(group)
        assert bound_s is not None
        assert bound_s <= best_s * (1 + 1e-9)
        ratios.append(time_s(group, target) / best_s)
        over_bound.append(time_s(group, target) / bound_s)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.002
    assert max_moves < 9 or statistics.median(over_bound) <= 1.05


def _busy(seed: int, *, partitions: int, members: int, utilisation: float) -> Group:
    """Unequal members, heavy-tailed lag beside arrivals that fill so much of them, owned by anybody."""
    random = np.random.default_rng([seed, partitions])
    capacity = random.uniform(30, 200, members).round(1)
    rate = random.pareto(1.3, partitions) + 0.05
    rate = np.minimum(rate * utilisation * capacity.sum() / rate.sum(), 0.9 * capacity.max())
    owner = random.integers(0, members, partitions)
    owners = [
        member(
            f"m{m:02d}", "t", owned={"t": np.flatnonzero(owner == m).tolist()}, capacity=float(capacity[m])
        )
        for m in range(members)
    ]
    lags = (random.pareto(1.1, partitions) * 5000).astype(int).tolist()
    return build({"t": partitions}, *owners, lags={"t": lags}, rates={"t": rate.tolist()})


@pytest.mark.parametrize("max_moves", [1, 2, 8])
@pytest.mark.parametrize("utilisation", [0.5, 0.8, 0.95])
def test_busy_small_group_is_drained_as_soon_as_any_assignment_does(
    utilisation: float, max_moves: int
) -> None:
    for seed in range(20):
        group = _busy(seed, partitions=8, members=3, utilisation=utilisation)

        target = lag_sticky(group, max_moves=max_moves, **FREE)

        validity.check(group, target)
        best_s, bound_s = soonest_s(group, max_moves=max_moves), lower_bound_s(group)
        assert bound_s is not None
        assert time_s(group, target) <= best_s * 1.002
        if max_moves == 8:
            assert math.isfinite(best_s)
            assert bound_s == pytest.approx(best_s)


# Seeds of groups that can be drained: of one that cannot, annealing has nothing to say.
@pytest.mark.parametrize(
    ("partitions", "members", "seeds"), [(13, 3, (0, 1)), (24, 4, (0, 1)), (40, 8, (2, 3))], ids=str
)
@pytest.mark.parametrize("utilisation", [0.7, 0.9, 0.95])
def test_busy_group_is_drained_about_as_soon_as_annealing_does(
    partitions: int, members: int, seeds: tuple[int, ...], utilisation: float
) -> None:
    for seed in seeds:
        group = _busy(seed, partitions=partitions, members=members, utilisation=utilisation)

        target = lag_sticky(group, max_moves=partitions, **FREE)

        validity.check(group, target)
        judge_s = annealed_s(group, seed=seed)
        assert math.isfinite(judge_s)
        assert time_s(group, target) <= judge_s * 1.02
