"""Groups whose surroundings answer to what they do: a plan changes more than who reads what."""

from dataclasses import replace
from math import ceil

import numpy as np

from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.scenarios.parts import CAPACITY, HOUR, TEN_MINUTES, plain, slowed
from tests.benchmarks.worlds.surroundings import Autoscaler, Database, Transactions, WarmUp

_MINUTE = TEN_MINUTES // 10


def shared_database(rng: np.random.Generator) -> Scenario:
    """All members write to one database: what catches up faster than it can take slows everybody.

    Half an hour to an hour in, an incident leaves everybody 40 to 70 % of its speed for 10 to 20 minutes. In half of
    the seeds a member is slow besides, from the tenth minute on.
    """
    group = plain(rng, use=rng.uniform(0.45, 0.55), spread=0.15)
    database = Database(
        knee=float(rng.uniform(1.15, 1.4) * group.mean_rate[0].sum()), loss=float(rng.uniform(0.1, 0.5))
    )
    if rng.uniform() < 0.5:
        group = slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames)
    begun, capacity = int(rng.integers(HOUR // 2, HOUR)), group.capacity.copy()
    capacity[begun : begun + int(rng.integers(10 * _MINUTE, 20 * _MINUTE + 1))] *= rng.uniform(0.4, 0.7)
    return replace(group, capacity=capacity, database=database)


def hot_key_and_cold_caches(rng: np.random.Generator) -> Scenario:
    """Every 4 to 8 minutes the hot key is in another partition; the caches of a new owner take minutes to fill."""
    group = plain(rng, use=rng.uniform(0.45, 0.55))
    more = np.zeros(group.n_partitions)
    mean_rate, begun, hot = group.mean_rate.copy(), TEN_MINUTES, -1
    while begun < group.frames:
        until = begun + int(rng.integers(4 * _MINUTE, 8 * _MINUTE + 1))
        hot = int(rng.choice([other for other in range(group.n_partitions) if other != hot]))
        more[:] = 0.0
        more[hot] = rng.uniform(0.5, 0.8) * CAPACITY
        mean_rate[begun:until] += more
        begun = until
    warm_up = WarmUp(length_s=float(rng.uniform(60, 180)), times=float(rng.uniform(3, 8)))
    return replace(group, rate=group.rate / group.mean_rate * mean_rate, mean_rate=mean_rate, warm_up=warm_up)


def transactions_of_minutes(rng: np.random.Generator) -> Scenario:
    """A job writes the first topic, or the only one, and commits every 1 to 5 minutes: until then nobody may read it.

    Every tenth commit fails, and its records come with the next one. Nothing is wrong with the members.
    """
    group = plain(rng, use=rng.uniform(0.55, 0.8), topics=int(rng.integers(1, 3)))
    interval_s = float(rng.uniform(60, 300))
    planned = np.arange(rng.uniform(0, interval_s), group.horizon_s, interval_s)
    commits_s = planned[rng.uniform(size=len(planned)) >= 0.1].tolist()
    return replace(group, transactions=Transactions(commits_s=commits_s, of=group.topic_of == 0))


def autoscaled_by_lag(rng: np.random.Generator) -> Scenario:
    """Load comes in waves, and an autoscaler adds members when lag is high and removes them when it is low.

    The least number of members is too small for the peak. Whoever joins or leaves makes the group rebalance.
    """
    group = plain(rng, use=rng.uniform(0.4, 0.5), members=(4, 12))
    time_h = np.arange(group.frames)[:, None] * FRAME_S / 3600
    wave = 1 + rng.uniform(0.3, 0.5) * np.cos(2 * np.pi * (time_h / rng.uniform(0.75, 1.5) + rng.uniform()))
    scaler = Autoscaler(
        lag_per_member=float(rng.uniform(10, 60) * CAPACITY), least=ceil(0.5 * group.n_members)
    )
    return replace(group, rate=group.rate * wave, mean_rate=group.mean_rate * wave, autoscaler=scaler)
