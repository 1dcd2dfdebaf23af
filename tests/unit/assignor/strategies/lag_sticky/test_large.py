"""`lag-sticky` where members hold more than its tables do."""

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s
from assignor.model.group import Group
from tests.support.assignors.drain_groups import FREE, lag_sticky, moved, owned
from tests.support.assignors.groups import group, member


def over_bound(built: Group, **options: object) -> float:
    """Drain time over the bound; the answer is checked."""
    target = lag_sticky(built, **options)
    validity.check(built, target)
    found_s, bound_s = drain_s(built, target.member), lower_bound_s(built)
    assert found_s is not None
    assert bound_s
    return found_s / bound_s


def fresh(capacities: list[float], n_partitions: int, *, topics: list[str], heavy: bool) -> Group:
    """Nobody owns anything; member m reads topics[m], each letter a topic."""
    random = np.random.default_rng(7)
    names = sorted(set("".join(topics)))
    members = [member(f"m{m:02d}", *topics[m], capacity=capacity) for m, capacity in enumerate(capacities)]
    counts = dict.fromkeys(names, n_partitions // len(names))
    draw = (lambda n: random.pareto(1.5, n) * 100) if heavy else (lambda n: random.integers(0, 100, n))
    lags = {name: draw(count).astype(int).tolist() for name, count in counts.items()}
    return group(counts, *members, lags=lags)


@pytest.mark.parametrize("heavy", [True, False], ids=["heavy-tailed", "uniform"])
@pytest.mark.parametrize(
    ("capacities", "topics"),
    [([10.0] * 6, ["t"] * 6), ([10.0, 20.0, 40.0] * 2, ["t"] * 6), ([10.0] * 6, ["ab", "bc", "ca"] * 2)],
    ids=["equal", "unequal capacities", "unequal subscriptions"],
)
def test_fresh_group_is_dealt_out_close_to_the_bound(
    capacities: list[float], topics: list[str], heavy: bool
) -> None:
    built = fresh(capacities, 1500, topics=topics, heavy=heavy)

    assert over_bound(built, max_moves=0, **FREE) <= 1.01


def test_fresh_group_without_lag_is_dealt_out_by_count() -> None:
    members = [member(name, *topics, capacity=1.0) for name, topics in (("x", "a"), ("y", "ab"), ("z", "b"))]
    built = group({"a": 500, "b": 300}, *members)

    counts = validity.check(built, lag_sticky(built, max_moves=0)).counts

    assert np.ptp(counts) <= 25


def test_member_clears_its_light_partitions_for_a_heavy_one() -> None:
    """t-0 takes 100 s alone. Its owner has 300 light ones beside it, and so have the others."""
    lags = [[1000] + [1] * 300, [1] * 300, [1] * 300]
    built = owned(*lags)

    target = lag_sticky(built, max_moves=400, **FREE)

    validity.check(built, target)
    assert drain_s(built, target.member) == pytest.approx(100, rel=2e-3)
    assert moved(built, target) <= 300


def test_fewest_moves_relieve_a_member_of_much() -> None:
    """100 s too much are in two partitions, or in a hundred."""
    built = owned([500, 500, *[10] * 100], [], capacity=10.0)

    target = lag_sticky(built, max_moves=100, **{**FREE, "move_cost_s": 0.5})

    validity.check(built, target)
    assert moved(built, target) <= 3
    assert drain_s(built, target.member) == 100


def test_budget_holds_where_much_would_have_to_move() -> None:
    built = owned([10] * 400, [], capacity=10.0)

    target = lag_sticky(built, max_moves=37, **FREE)

    validity.check(built, target)
    assert moved(built, target) == 37
    assert drain_s(built, target.member) == 363
