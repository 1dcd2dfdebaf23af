"""What lagwise's own pipeline makes of the world: offsets seen at each trigger, rates and ages from `pipeline.lag`."""

import numpy as np

from assignor.model.arrays import Floats, Int64s
from pipeline.config.model import RatesConfig
from pipeline.lag.age import lag_age
from pipeline.lag.lag import difference, lag
from pipeline.lag.rates import arrival_rate, drain_rate
from pipeline.lag.samples import append, empty
from tests.benchmarks.worlds.scenario import FRAME_S
from tests.benchmarks.worlds.world import World

START_MS = 1_700_000_000_000
_COMMIT_INTERVAL_S = 5.0
_HALF_LIFE_MS = RatesConfig().half_life_s * 1000
_FIRST_END = 100_000_000
_HISTORY_S = (43_200, 21_600, 10_800, 5_400, 2_700, 1_200, 600, 300, 120, 60)


class Observer:
    """The rows of the group's partitions, kept up from trigger to trigger.

    It has watched the group for half a day when the run begins.
    """

    def __init__(self, world: World) -> None:
        """Rates and samples of before the start."""
        self.world = world
        scenario, partitions = world.scenario, world.scenario.n_partitions
        self.log_start: Int64s = np.zeros(partitions, np.int64)
        self.log_end: Int64s = np.full(partitions, _FIRST_END, np.int64)
        self.committed: Int64s = self._position()
        self.arrival_rate: Floats = scenario.mean_rate[0].copy()
        self.drain_rate: Floats = scenario.mean_rate[0].copy()
        self.age_s: Floats = np.zeros(partitions)
        self.at_ms = START_MS
        self._samples = empty(partitions)
        for ago_s in _HISTORY_S:
            end = (_FIRST_END - scenario.mean_rate[0] * ago_s).astype(np.int64)
            self._samples = append(self._samples, np.full(partitions, START_MS - ago_s * 1000), end)

    def look(self) -> None:
        """A trigger: ask for the log offsets, take in the commits, and measure."""
        world = self.world
        now_ms = START_MS + round(world.now_s * 1000)
        seen_ms = np.full(len(self.log_end), now_ms)
        end = _FIRST_END + np.floor(world.arrived).astype(np.int64)
        committed = np.maximum(self.committed, self._position())
        elapsed_ms = seen_ms - self.at_ms
        self.arrival_rate = arrival_rate(
            self.arrival_rate, difference(end, self.log_end), elapsed_ms, _HALF_LIFE_MS
        )
        self.drain_rate = drain_rate(
            self.drain_rate, difference(committed, self.committed), elapsed_ms, _HALF_LIFE_MS
        )
        self._samples = append(self._samples, seen_ms, end)
        self.log_end, self.committed, self.at_ms = end, committed, now_ms
        records = lag(committed, self.log_start, end)
        self.age_s = lag_age(
            self._samples, committed=committed, log_start=self.log_start, lag=records, now_ms=now_ms
        ).seconds

    def _position(self) -> Int64s:
        """What is committed: what was read up to the newest commit, 0 to 5 s ago by member."""
        world = self.world
        phase_s = (world.now_s + FRAME_S * 0.37 * np.maximum(world.owner, 0)) % _COMMIT_INTERVAL_S
        # A partition in a hand-over was committed at its release.
        since_s = np.where(world.reads, phase_s, 0.0)
        position = _FIRST_END - self.world.scenario.lag + world.read - world.read_rate * since_s
        return np.floor(position).astype(np.int64)
