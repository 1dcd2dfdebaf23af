"""What surrounds a group in the closed-loop worlds does what it says, and true lag grows when it should."""

from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.worlds.policies import NoPlans
from tests.benchmarks.worlds.run import run
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.scenarios import drawn
from tests.benchmarks.worlds.scenarios.parts import CAPACITY
from tests.benchmarks.worlds.surroundings import Autoscaler, Database, Replicas, Transactions, WarmUp
from tests.benchmarks.worlds.world import REBALANCE_S, World

_SEEDS = range(10)


def quiet() -> Scenario:
    """A group with nothing wrong, without noise."""
    scenario = drawn("nothing wrong", 0)
    return replace(scenario, rate=scenario.mean_rate)


def test_a_database_does_all_up_to_its_knee_and_less_in_all_beyond_it() -> None:
    database = Database(knee=100.0, loss=0.4)

    assert database.share_done(0.0) == database.share_done(100.0) == 1.0
    assert 150 * database.share_done(150.0) == pytest.approx(80.0)
    assert 200 * database.share_done(200.0) == pytest.approx(60.0)
    assert 500 * database.share_done(500.0) == pytest.approx(60.0)


def test_a_backlog_of_one_member_slows_the_others_by_the_database() -> None:
    scenario = quiet()
    behind = scenario.range_owners(0) == 0
    arriving = scenario.rate[0].sum()
    scenario = replace(
        scenario, lag=np.where(behind, 1e6, 0.0), database=Database(knee=arriving * 1.01, loss=0.5)
    )
    alone = World(replace(scenario, database=None))
    together = World(scenario)
    for world in (alone, together):
        world.advance(300.0)

    assert alone.lag[~behind].max() < 1.0
    assert together.lag[~behind].min() > 100.0
    assert together.lag.sum() > alone.lag.sum()
    assert together.read.sum() < 300 * scenario.database.knee


def test_more_partitions_read_in_haste_get_less_done_at_the_database() -> None:
    scenario = quiet()
    database = Database(knee=scenario.rate[0].sum() * 1.1, loss=0.5)
    one_member = np.where(scenario.range_owners(0) == 0, 1e5, 0.0)
    everybody = np.full(scenario.n_partitions, one_member.sum() / scenario.n_partitions)
    left = []
    for lag in (one_member, everybody):
        world = World(replace(scenario, lag=lag, database=database))
        world.advance(300.0)
        left.append(world.lag.sum())

    assert left[1] > left[0]


def moved(scenario: Scenario, *, until_s: float) -> World:
    """A world in which partition 0 went to the next member at the start."""
    world = World(scenario)
    world.hand_over(np.array([0]), np.array([(world.owner[0] + 1) % scenario.n_members], np.int32))
    world.advance(until_s)
    return world


def test_a_partition_with_a_new_owner_takes_more_work_until_its_caches_are_filled() -> None:
    scenario = quiet()
    hand_over_s = float(scenario.hand_over_s[0])
    scenario = replace(
        scenario,
        lag=np.where(np.arange(scenario.n_partitions) == 0, 1e6, 0.0),
        warm_up=WarmUp(length_s=120.0, times=5.0),
    )
    cold = moved(scenario, until_s=hand_over_s + 120.0)
    same = moved(replace(scenario, warm_up=None), until_s=hand_over_s + 120.0)
    assert cold.read[0] * 5 == pytest.approx(same.read[0], rel=0.01)

    before = cold.read[0], same.read[0]
    for world in (cold, same):
        world.advance(hand_over_s + 180.0)
    assert cold.read[0] - before[0] == pytest.approx(same.read[0] - before[1], rel=0.01)


def test_who_keeps_its_partition_in_a_rebalance_keeps_its_caches() -> None:
    scenario = replace(quiet(), warm_up=WarmUp(length_s=120.0, times=5.0))
    world = World(scenario)
    world.advance(60.0)
    owner = world.owner.copy()
    owner[0] = (owner[0] + 1) % scenario.n_members
    world.rebalance(owner, by_plan=np.zeros(len(owner), np.bool_))

    assert world.warm_s[0] == 60.0 + REBALANCE_S + 120.0
    assert not world.warm_s[1:].any()


def test_records_of_an_open_transaction_are_in_the_log_and_cannot_be_read() -> None:
    scenario = quiet()
    of = np.arange(scenario.n_partitions) % 2 == 0
    scenario = replace(scenario, transactions=Transactions(commits_s=[95.0, 200.0], of=of))
    world, rate = World(scenario), scenario.rate[0]

    world.advance(94.0)
    np.testing.assert_allclose(world.lag[of], 94 * rate[of])
    assert world.lag[~of].max() < 1e-6
    assert world.totals.lag_area == pytest.approx(0.0, abs=1e-3)

    # From the commit on the members catch up, with nothing but what came before it.
    world.advance(199.0)
    np.testing.assert_allclose(world.read[of], 95 * rate[of])
    np.testing.assert_allclose(world.lag[of], 104 * rate[of])
    area = world.totals.lag_area
    assert area > 0

    world.advance(290.0)
    np.testing.assert_allclose(world.read[of], 200 * rate[of])
    assert world.totals.lag_area > area


def scaled(looks: list[tuple[float, float]], *, count: int = 2) -> list[int]:
    """Numbers of members after looks at a time and a lag."""
    replicas = Replicas(rule=Autoscaler(lag_per_member=100.0, least=2), most=9, count=count)
    counts = []
    for now_s, lag in looks:
        replicas.look(now_s, lag)
        counts.append(replicas.count)
    return counts


def test_an_autoscaler_doubles_at_most_and_goes_no_further_than_it_may() -> None:
    assert scaled([(0, 150.0), (30, 219.0), (60, 300.0), (90, 1e6), (120, 1e6)]) == [2, 2, 3, 6, 9]


def test_an_autoscaler_removes_members_when_fewer_were_enough_for_a_while() -> None:
    looks = [(float(now_s), 1000.0 if now_s == 0 else 0.0) for now_s in range(0, 400, 30)]

    assert scaled(looks, count=9) == [9] * 11 + [2] * 3


def test_lag_makes_members_join_and_the_group_rebalance() -> None:
    scenario = quiet()
    least = scenario.n_members - 1
    scaler = Autoscaler(lag_per_member=1000.0, least=least)
    world = World(replace(scenario, autoscaler=scaler))
    assert world.joined.sum() == least
    assert set(world.owner.tolist()) == set(range(least))

    backlog = replace(scenario, lag=np.full(scenario.n_partitions, 1e5), autoscaler=scaler)
    world = World(backlog)
    world.scale()
    assert world.joined.all()
    assert set(world.range_owners().tolist()) == set(range(scenario.n_members))


def test_a_member_that_left_reads_nothing_until_the_group_rebalances() -> None:
    scenario = replace(quiet(), autoscaler=Autoscaler(lag_per_member=1000.0, least=1))
    world = World(scenario)
    world.replicas.count = scenario.n_members
    world.rebalance(world.range_owners(), by_plan=np.zeros(scenario.n_partitions, np.bool_))
    world.advance(30.0)
    world.replicas.count, read = 1, world.read.copy()
    world.advance(60.0)

    stays = world.owner == 0
    assert (world.read[~stays] == read[~stays]).all()
    np.testing.assert_allclose(world.lag[~stays], (world.arrived - read)[~stays])
    assert (world.read[stays] > read[stays]).all()


def test_the_database_is_too_slow_for_everybody_in_haste_and_not_for_what_arrives() -> None:
    for seed in _SEEDS:
        scenario = drawn("shared database", seed)
        assert scenario.mean_rate[0].sum() < 0.9 * scenario.database.knee
        assert scenario.n_members * CAPACITY > 1.2 * scenario.database.knee
        slow = (scenario.capacity < 0.75 * CAPACITY).all(axis=1)
        assert 20 <= slow.sum() <= 40


def test_the_hot_key_is_too_much_for_most_owners_and_never_for_a_member() -> None:
    for seed in _SEEDS:
        scenario = drawn("hot key and cold caches", seed)
        more = scenario.mean_rate - scenario.mean_rate[0]
        hot = more.argmax(axis=1)[more.any(axis=1)]
        assert ((more > 0).sum(axis=1) <= 1).all()
        assert 20 <= (np.diff(hot) != 0).sum() <= 45
        assert 0.5 * CAPACITY <= more.max() <= 0.8 * CAPACITY
        assert scenario.mean_rate.sum(axis=1).max() < 0.85 * scenario.n_members * CAPACITY


def test_commits_of_the_job_are_minutes_apart_and_a_tenth_of_them_fails() -> None:
    missed = []
    for seed in _SEEDS:
        gaps_s = np.diff(drawn("transactions of minutes", seed).transactions.commits_s)
        assert 60 <= gaps_s.min() <= 300
        missed.append((np.round(gaps_s / gaps_s.min()) - 1).sum() / len(gaps_s))

    assert 0.05 < np.mean(missed) < 0.2


def test_the_autoscaler_adds_and_removes_members_without_any_plan() -> None:
    for seed in range(4):
        scenario = drawn("autoscaled by lag", seed)
        outcome = run(scenario, NoPlans())
        assert scenario.mean_rate.sum(axis=1).max() > scenario.autoscaler.least * CAPACITY
        assert scenario.mean_rate.sum(axis=1).max() < scenario.n_members * CAPACITY
        assert 2 <= outcome.rebalances <= scenario.horizon_s / FRAME_S / 4
        assert outcome.moves == 0
