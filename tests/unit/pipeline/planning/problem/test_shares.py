"""What records of a partition cost shows in what its owner reads while it is behind, before anything moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.model.arrays import Bools, Floats
from pipeline.planning.problem.shares import LEAST_READINGS, told

N = 5
SPEED = 1000.0


def read(cost: Floats, readings: int, seed: int, *, varies: float = 0.0) -> tuple[Floats, Bools]:
    """What a member reads of partition 0, in which it is behind, and of the others, with which it keeps up."""
    rng = np.random.default_rng(seed)
    rates = 100.0 * rng.lognormal(0.0, 0.1, (readings, N))
    speed = SPEED * np.maximum(1 + varies * rng.standard_normal(readings), 0.5)
    rates[:, 0] = (speed - (rates * cost)[:, 1:].sum(axis=1)) / cost[0]
    return rates, np.tile(np.arange(N) == 0, (readings, 1))


@pytest.mark.parametrize("cost", [2.5, 4.0, 8.0])
def test_partition_whose_records_leave_time_for_fewer_is_named_with_what_they_cost(cost: float) -> None:
    rates, behind = read(np.array([cost, 1, 1, 1, 1]), 20, 0)

    found = told(rates, behind, N)

    assert found is not None
    assert found == (0, pytest.approx(cost, rel=0.1))


def test_speed_that_varies_by_itself_does_not_hide_a_cost_for_long() -> None:
    found = [told(*read(np.array([6.0, 1, 1, 1, 1]), 40, seed, varies=0.03), N) for seed in range(20)]

    named = [one for one in found if one is not None]
    assert len(named) >= 15
    assert all(partition == 0 for partition, _ in named)
    assert 4 <= np.median([cost for _, cost in named]) <= 9


@pytest.mark.parametrize("varies", [0.0, 0.05, 0.1, 0.2])
def test_nothing_is_named_where_all_records_cost_the_same(varies: float) -> None:
    """While the member is fast, the share of all that keeps up falls: that alone is no cost."""
    found = [told(*read(np.ones(N), n, seed, varies=varies), N) for seed in range(60) for n in (8, 20, 40)]

    assert not any(found)


def test_partitions_that_are_always_read_alike_are_not_told_apart() -> None:
    rates, behind = read(np.array([6.0, 1, 1, 1, 1]), 40, 0)
    twice = np.column_stack([rates[:, 0] / 2, rates[:, 0] / 2, rates[:, 1:]])

    assert told(twice, np.column_stack([behind[:, :1], behind]), N + 1) is None


def test_few_readings_and_a_single_partition_say_nothing() -> None:
    rates, behind = read(np.array([6.0, 1, 1, 1, 1]), LEAST_READINGS - 1, 0)

    assert told(rates, behind, N) is None
    assert told(rates[:, :1].repeat(3, axis=0), behind[:, :1].repeat(3, axis=0), 1) is None


def test_chunks_of_one_partition_after_the_other_tell_a_cost_among_several_that_lag() -> None:
    """A fetch hands out many records of one partition, so shares vary from reading to reading."""
    rng = np.random.default_rng(0)
    cost = np.array([1, 1, 5.0, 1])
    share = rng.dirichlet(np.full(4, 30.0), 20)
    rates = share * (SPEED / (share * cost).sum(axis=1))[:, None]

    assert told(rates, np.ones((20, 4), np.bool_), 4) == (2, pytest.approx(5, rel=0.1))


@given(st.integers(0, 1000), st.permutations(range(N)), st.floats(0.01, 1e4))
def test_order_of_partitions_and_unit_of_time_do_not_matter(seed: int, order: list[int], unit: float) -> None:
    rates, behind = read(np.array([6.0, 1, 1, 1, 1]), 12, seed, varies=0.02)

    found, other = told(rates, behind, N), told(rates[:, order] * unit, behind[:, order], N)

    assert (other is None) == (found is None)
    if found is not None and other is not None:
        assert (order[other[0]], other[1]) == found


def drifting(rng: np.random.Generator, readings: int, *, spread: float) -> Floats:
    """Factors around 1, each close to the one before it (an AR(1) process with a correlation of 0.95)."""
    shocks, at = rng.standard_normal(readings) * spread, np.zeros(readings)
    for now in range(1, readings):
        at[now] = 0.95 * at[now - 1] + shocks[now] * np.sqrt(1 - 0.95**2)
    return np.exp(at)


def test_speed_and_arrivals_that_drift_are_hardly_ever_taken_for_a_cost() -> None:
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        kept_up = np.column_stack([80 * drifting(rng, 40, spread=0.3) for _ in range(5)])
        rest = SPEED * drifting(rng, 40, spread=0.1) - kept_up.sum(axis=1)
        rates = np.column_stack([np.maximum(rest, 1.0), kept_up])
        named += told(rates, np.tile(np.arange(6) == 0, (40, 1)), 6) is not None

    assert named <= 6
