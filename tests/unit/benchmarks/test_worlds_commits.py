"""Commits of the closed-loop worlds: when they are made, what they hold, and that nothing else is seen."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.lag.lag import UNKNOWN
from tests.benchmarks.worlds.commits import At, ByCount, Every, Rhythm, by_count, every, irregular
from tests.benchmarks.worlds.followers import Followers, Offer
from tests.benchmarks.worlds.observer import START_MS, Observer
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.scenarios.parts import plain
from tests.benchmarks.worlds.world import World

_FRAMES = 40
_Rhythms = Callable[[np.random.Generator, int], tuple[Rhythm, ...]]
_RHYTHMS: dict[str, _Rhythms] = {
    "every 1 s": lambda rng, n: every(rng, n, interval_s=1.0),
    "every 15 s": lambda rng, n: every(rng, n, interval_s=15.0),
    "every 60 s": lambda rng, n: every(rng, n, interval_s=60.0),
    "by count": lambda rng, n: by_count(rng, n, records=20_000.0),
    "irregular": lambda rng, n: irregular(rng, n, until_s=_FRAMES * FRAME_S),
}


def healthy(rhythms: _Rhythms = _RHYTHMS["every 60 s"]) -> Scenario:
    """A group that keeps up, for 20 minutes."""
    rng = np.random.default_rng(7)
    whole = plain(rng, use=0.6, members=(3, 3))
    cut = slice(0, _FRAMES)
    return replace(
        whole,
        rate=whole.rate[cut],
        mean_rate=whole.mean_rate[cut],
        capacity=whole.capacity[cut],
        joined=whole.joined[cut],
        jitter=whole.jitter[cut],
        hung=whole.hung[cut],
        commits=rhythms(rng, whole.n_members),
    )


def standing(scenario: Scenario, *, slot: int, frames: slice, hung: bool) -> Scenario:
    """The same, but a member stands still."""
    capacity, hangs = scenario.capacity.copy(), scenario.hung.copy()
    capacity[frames, slot], hangs[frames, slot] = 0.0, hung
    return replace(scenario, capacity=capacity, hung=hangs)


@pytest.mark.parametrize("rhythms", _RHYTHMS.values(), ids=_RHYTHMS)
def test_a_commit_holds_what_had_been_read_when_it_was_made(rhythms: _Rhythms) -> None:
    scenario = healthy(rhythms)
    world = World(scenario)
    world.advance(307.0)

    for partition in range(scenario.n_partitions):
        then = World(scenario)
        then.advance(int(world.commit_ms[partition]) / 1000)
        assert world.committed[partition] == pytest.approx(then.read[partition], abs=1.5)
        assert world.committed[partition] <= then.read[partition] + 1e-6


def test_commits_follow_one_another_at_the_interval() -> None:
    scenario = healthy(lambda _, n: tuple(Every(interval_s=15.0, phase_s=2.0 + slot) for slot in range(n)))
    world, seen = World(scenario), set()
    for at_s in range(1, 120):
        world.advance(float(at_s))
        seen.add(int(world.commit_ms[np.flatnonzero(world.owner == 1)[0]]))

    assert sorted(seen) == [-12_000, *range(3_000, 120_000, 15_000)]


def test_irregular_commits_are_those_that_were_drawn() -> None:
    scenario = healthy(lambda _, n: (At(times_s=(-3.0, 4.5, 61.25, 70.0)),) * n)
    world, seen = World(scenario), set()
    for at_s in range(1, 120):
        world.advance(float(at_s))
        seen.update(world.commit_ms.tolist())

    assert sorted(seen) == [-3_000, 4_500, 61_250, 70_000]


def test_by_count_a_member_commits_every_so_many_records() -> None:
    scenario = healthy(lambda _, n: (ByCount(records=5_000.0, phase=2_000.0),) * n)
    world, owned = World(scenario), scenario.range_owners(0) == 1
    totals: list[float] = []
    for at_s in range(1, 241):
        world.advance(float(at_s))
        totals.append(float(world.committed[owned].sum()))

    steps = np.unique(np.round(totals, 3))
    assert len(steps) > 20
    assert steps[0] == pytest.approx(-2_000, abs=0.01)
    np.testing.assert_allclose(np.diff(steps), 5_000, atol=0.01)


@pytest.mark.parametrize("hung", [True, False])
def test_a_member_that_hangs_does_not_commit_and_one_that_polls_commits_the_same_again(*, hung: bool) -> None:
    scenario = standing(
        healthy(lambda rng, n: every(rng, n, interval_s=5.0)), slot=1, frames=slice(4, 10), hung=hung
    )
    world, stands = World(scenario), scenario.range_owners(0) == 1
    world.advance(120.0)
    at_ms, read = world.commit_ms.copy(), world.read.copy()
    world.advance(300.0)

    np.testing.assert_array_equal(world.read[stands], read[stands])
    assert ((world.commit_ms[stands] == at_ms[stands]) == hung).all()
    assert hung or (world.committed[stands] == read[stands]).all()
    assert (world.commit_ms[~stands] > at_ms[~stands]).all()
    world.advance(330.0)
    assert (world.commit_ms[stands] > 300_000).all()


def test_a_member_that_has_left_does_not_commit_and_the_others_do_when_the_group_rebalances() -> None:
    scenario = healthy()
    joined = scenario.joined.copy()
    joined[4:, 1] = False
    world, left = World(replace(scenario, joined=joined)), scenario.range_owners(0) == 1
    world.advance(120.0)
    before_ms, before = world.commit_ms.copy(), world.committed.copy()
    world.advance(130.0)
    world.rebalance(np.where(left, 0, world.owner), by_plan=np.zeros(len(left), np.bool_))

    np.testing.assert_array_equal(world.commit_ms[left], before_ms[left])
    np.testing.assert_array_equal(world.committed[left], before[left])
    assert (world.commit_ms[~left] == 130_000).all()
    np.testing.assert_array_equal(world.committed[~left], world.read[~left])


def test_a_partition_is_committed_at_its_release_and_then_by_its_taker_alone() -> None:
    scenario = healthy()
    world = World(replace(scenario, hand_over_s=np.full(scenario.n_partitions, 100.0)))
    world.advance(70.0)
    world.hand_over(np.array([0]), np.array([1], np.int32))
    world.advance(169.0)
    assert (world.commit_ms[0], world.committed[0]) == (70_000, world.read[0])

    world.advance(290.0)
    taken = np.flatnonzero(world.owner == 1)
    assert 0 in taken
    assert len(set(world.commit_ms[taken].tolist())) == 1


def test_a_member_that_hangs_answers_when_it_goes_on() -> None:
    scenario = standing(healthy(), slot=0, frames=slice(0, 5), hung=True)
    world = World(scenario)
    followers = Followers(world=world)
    target = np.where(np.arange(scenario.n_partitions) == 0, 1, world.owner).astype(np.int32)
    followers.take(Offer(epoch=1, generation=1, target=target))

    while (at_s := followers.next_s()) < 149.0:
        world.advance(at_s)
        followers.act()
    assert 0 not in followers.acks()
    assert world.owner[0] == 0
    while (at_s := followers.next_s()) < 240.0:
        world.advance(at_s)
        followers.act()
    world.advance(240.0)
    assert world.owner[0] == 1


def test_between_two_commits_nothing_of_what_is_read_is_seen() -> None:
    scenario = healthy(lambda _, n: (Every(interval_s=60.0, phase_s=10.0),) * n)
    world = World(scenario)
    observer = Observer(world)
    seen = []
    for frame in range(1, 7):
        world.advance(float(frame * FRAME_S))
        observer.look()
        seen.append((observer.committed.copy(), observer.commit_age_s.tolist()[0]))
        assert (world.lag < 100).all()

    for first, second in ((0, 1), (2, 3), (4, 5)):
        np.testing.assert_array_equal(seen[first][0], seen[second][0])
    assert [age_s for _, age_s in seen] == [20.0, 50.0] * 3
    # It shows what arrived since, and was read long ago.
    assert ((observer.log_end - observer.committed) > 40 * scenario.mean_rate[5]).all()
    assert (observer.lag_at_commit <= 2).all()


@pytest.mark.parametrize("rhythms", _RHYTHMS.values(), ids=_RHYTHMS)
def test_a_group_that_keeps_up_is_never_behind_at_a_commit_nor_ahead_of_the_log(rhythms: _Rhythms) -> None:
    world = World(healthy(rhythms))
    observer = Observer(world)
    for frame in range(1, _FRAMES + 1):
        world.advance(float(frame * FRAME_S))
        observer.look()
        assert (observer.lag_at_commit != UNKNOWN).all()
        assert (observer.lag_at_commit <= 2).all()
        assert (observer.committed <= observer.log_end).all()
        assert (observer.commit_ms <= observer.at_ms).all()


@pytest.mark.parametrize(("interval_s", "seen_every_s"), [(1.0, 30.0), (15.0, 30.0), (60.0, 60.0)])
def test_the_pace_of_commits_is_known_when_the_run_begins(interval_s: float, seen_every_s: float) -> None:
    scenario = healthy(lambda rng, n: every(rng, n, interval_s=interval_s))
    observer = Observer(World(scenario))
    pace = observer.pace

    assert (np.diff(observer._window.commit_timestamp_ms) > 0).all()
    np.testing.assert_allclose(pace.interval_s, seen_every_s, atol=0.01)
    np.testing.assert_allclose(pace.rate, scenario.mean_rate[0], rtol=0.02)
    np.testing.assert_array_equal(pace.least_lag <= 1, np.ones(scenario.n_partitions, np.bool_))


def test_of_a_partition_that_is_behind_at_the_start_the_newest_commit_is_known_alone() -> None:
    scenario = healthy()
    lag = np.zeros(scenario.n_partitions)
    lag[3] = 10_000.0
    observer = Observer(World(replace(scenario, lag=lag)))

    assert observer.log_end[3] - observer.committed[3] == 10_000
    assert 0 <= START_MS - observer.commit_ms[3] < 60_000
    assert np.flatnonzero(np.isnan(observer.pace.rate)).tolist() == [3]
