"""The fluid model of the closed-loop worlds: what it may never do, in every world and under every policy."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.benchmarks.worlds import run as run_module
from tests.benchmarks.worlds import world as world_module
from tests.benchmarks.worlds.bench import POLICIES
from tests.benchmarks.worlds.followers import Followers, Offer
from tests.benchmarks.worlds.policies import Kip169, NoPlans
from tests.benchmarks.worlds.run import Policy, run
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.scenarios import GENERATORS, Generator
from tests.benchmarks.worlds.scenarios.usual import busy, rolling_restart, slow_member
from tests.benchmarks.worlds.service import served
from tests.benchmarks.worlds.world import World

_FRAMES = 40


def short(generator: Generator, seed: int = 0) -> Scenario:
    """The first 20 minutes, whatever comes later in them."""
    whole = generator(np.random.default_rng(seed))
    first = whole.frames // 6
    cut = slice(first, first + _FRAMES)
    return replace(
        whole,
        rate=whole.rate[cut],
        mean_rate=whole.mean_rate[cut],
        capacity=whole.capacity[cut],
        jitter=whole.jitter[cut],
        hung=whole.hung[cut],
        joined=whole.joined[cut],
    )


class Watched(World):
    """A world whose every step is checked."""

    def _step(self, until_s: float) -> None:
        reads, owner, before, done = (
            self.reads.copy(),
            self.owner.copy(),
            self.read.copy(),
            self.work_done.copy(),
        )
        length_s, frame = until_s - self.now_s, self.frame
        super()._step(until_s)
        work = (self.read - before) * self.scenario.cost
        assert (work >= 0).all()
        assert (owner[reads] >= 0).all()
        # Nobody reads what has no owner or is paused, and what is read is the work of one member: the owner.
        assert not work[~reads].any()
        by_owner = np.bincount(owner[reads], weights=work[reads], minlength=len(done))
        np.testing.assert_allclose(self.work_done - done, by_owner, atol=1e-6)
        assert (by_owner <= self.scenario.budget(frame) * length_s * (1 + 1e-9)).all()
        np.testing.assert_allclose(self.scenario.lag + self.arrived, self.read + self.lag, rtol=1e-9)
        assert (self.lag >= 0).all()
        assert (self.committed <= self.read + 1e-6).all()
        assert (self.commit_ms <= until_s * 1000 + 1).all()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(run_module, "World", Watched)
    return


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))
@pytest.mark.parametrize("name", [name for name in POLICIES if name != "lagwise"])
@pytest.mark.usefixtures("watched")
def test_no_record_is_lost_or_read_twice_and_nobody_does_more_than_it_can(
    generator: Generator, name: str
) -> None:
    run(short(generator), POLICIES[name]())


@pytest.mark.usefixtures("watched")
def test_the_same_holds_under_the_real_planning() -> None:
    run(short(busy), POLICIES["lagwise"]())


@pytest.mark.parametrize("name", POLICIES)
def test_equal_seeds_give_equal_outcomes(name: str) -> None:
    first, second = (asdict(run(short(busy, 3), POLICIES[name]())) for _ in range(2))

    assert first == second


def test_other_seeds_give_other_worlds() -> None:
    assert run(short(busy, 1), NoPlans()).lag_area != run(short(busy, 2), NoPlans()).lag_area


def _reads_more_than_it_can(waiting: np.ndarray, member: np.ndarray, budget: np.ndarray) -> np.ndarray:
    return served(waiting, member, 1.2 * budget)


def _reads_what_is_paused(waiting: np.ndarray, member: np.ndarray, budget: np.ndarray) -> np.ndarray:
    return served(waiting + 1, member, budget)


@pytest.mark.parametrize("broken", [_reads_more_than_it_can, _reads_what_is_paused])
@pytest.mark.usefixtures("watched")
def test_broken_physics_is_noticed(
    broken: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_module, "served", broken)

    with pytest.raises(AssertionError):
        run(short(slow_member), Kip169())


def test_a_partition_with_two_readers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Watched(short(busy))
    monkeypatch.setattr(World, "reads", np.ones(world.scenario.n_partitions, np.bool_))
    world.hand_over(np.array([0]), np.array([1], np.int32))

    with pytest.raises(AssertionError):
        world.advance(30.0)


def test_a_member_shares_its_work_fairly_and_is_never_idle_while_work_waits() -> None:
    work = served(np.array([1.0, 50.0, 80.0, 3.0]), np.array([0, 0, 0, 1]), np.array([61.0, 10.0]))

    np.testing.assert_allclose(work, [1, 30, 30, 3])


def test_a_partition_that_moves_has_no_reader_until_its_taker_starts() -> None:
    world = Watched(short(busy))
    giver, hand_over_s = int(world.owner[0]), float(world.scenario.hand_over_s[0])
    taker = (giver + 1) % world.scenario.n_members
    world.advance(12.0)
    read = world.read[0]

    world.hand_over(np.array([0]), np.array([taker], np.int32))
    world.advance(12.0 + hand_over_s - 0.1)
    assert world.owner[0] == -1
    assert world.read[0] == read

    world.advance(30.0)
    assert world.owner[0] == taker
    assert world.read[0] > read
    assert world.totals.plan_moves == 1


def test_a_rebalance_stops_everything_for_a_few_seconds() -> None:
    world = Watched(short(busy))
    world.advance(10.0)
    read = world.read.copy()

    world.rebalance(world.owner.copy(), by_plan=np.ones(world.scenario.n_partitions, np.bool_))
    world.advance(10.0 + world_module.REBALANCE_S)

    np.testing.assert_array_equal(world.read, read)
    assert world.totals.plan_moves == 0


def test_an_hour_is_the_time_within_which_a_move_back_counts() -> None:
    scenario = short(busy)
    world = World(
        replace(
            scenario,
            rate=scenario.rate[:1].repeat(500, 0),
            capacity=scenario.capacity[:1].repeat(500, 0),
            joined=scenario.joined[:1].repeat(500, 0),
            jitter=scenario.jitter[:1].repeat(500, 0),
            hung=scenario.hung[:1].repeat(500, 0),
        )
    )
    giver = int(world.owner[0])
    taker = (giver + 1) % scenario.n_members
    for at_s, to in ((0, taker), (1800, giver), (9000, taker)):
        world.advance(at_s)
        world.hand_over(np.array([0]), np.array([to], np.int32))
    world.advance(9030)

    assert (world.totals.plan_moves, world.totals.moves_back) == (3, 1)


def test_a_record_older_than_a_minute_makes_its_partition_late() -> None:
    scenario = short(busy)
    stopped = replace(scenario, rate=scenario.mean_rate, capacity=np.zeros_like(scenario.capacity))
    world = World(stopped)

    world.advance(2 * FRAME_S - 1)
    assert not world.late().any()
    world.advance(2 * FRAME_S + 1)
    assert world.late().all()


def test_a_giver_keeps_what_its_taker_has_not_accepted() -> None:
    scenario = short(busy)
    silent = np.ones(scenario.n_members, np.bool_)
    silent[1] = False
    world = World(replace(scenario, follows=silent))
    followers = Followers(world=world)
    target = world.owner.copy()
    target[np.flatnonzero(world.owner == 0)[0]] = 1
    other = np.flatnonzero(world.owner == 2)[0]
    target[other] = 0

    followers.take(Offer(epoch=1, generation=1, target=target))
    while (at_s := followers.next_s()) < 60:
        world.advance(at_s)
        followers.act()
    world.advance(90)

    assert np.flatnonzero(world.owner != scenario.range_owners(0)).tolist() == [other]
    assert followers.acks()[0] == ("accepted", 1)
    assert followers.acks()[2] == ("applied", 1)
    assert 1 not in followers.acks()


def test_a_plan_of_an_earlier_generation_or_another_base_is_refused() -> None:
    world = World(short(busy))
    followers = Followers(world=world)
    target = np.roll(world.owner, 1)

    for offer in (
        Offer(epoch=1, generation=0, target=target),
        Offer(epoch=2, generation=1, target=target, base=target),
    ):
        followers.take(offer)
        while followers.next_s() < float("inf"):
            world.advance(followers.next_s())
            followers.act()
        assert {kind for kind, _ in followers.acks().values()} == {"refused"}

    assert world.totals.plan_moves == 0


def test_members_that_restart_lose_nothing_but_time() -> None:
    policy: Policy = NoPlans()
    outcome = run(rolling_restart(np.random.default_rng(1)), policy)

    assert outcome.rebalances > 0
    assert outcome.moves == 0
