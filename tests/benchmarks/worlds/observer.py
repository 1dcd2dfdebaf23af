"""What lagwise's own pipeline makes of the world: newest commits and log ends, seen at each trigger and no further.

Commits have the broker's time, and so have log ends here: clocks do not differ. Everything else is what `pipeline.lag`
says about these two.
"""

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.config.model import RatesConfig, TriggerConfig
from pipeline.lag.age import lag_age
from pipeline.lag.commits.at_commit import lag_at_commit
from pipeline.lag.commits.pace import CommitPace, commit_pace
from pipeline.lag.commits.window import append_commit
from pipeline.lag.lag import UNKNOWN, difference, lag
from pipeline.lag.rates import arrival_rate, drain_rate
from pipeline.lag.readable import readable_offset
from pipeline.lag.samples import append
from tests.benchmarks.worlds.scenario import FRAME_S
from tests.benchmarks.worlds.world import World
from tests.support.job.measures import no_commits, no_samples

START_MS = 1_700_000_000_000
_HALF_LIFE_MS = RatesConfig().half_life_s * 1000
_MOST_GAP_MS = 5 * TriggerConfig().interval_s * 1000
_FIRST_END = 100_000_000
_HISTORY_S = (43_200, 21_600, 10_800, 5_400, 2_700, 1_200, 600, 300, 120, 60)
_WATCHED_FRAMES = 40
"""Triggers before the start whose commits are known: enough for a full window at a commit a minute."""
_ROUNDING = 1e-3
"""Records by which sums of what arrived and of what was read may differ."""


class Observer:
    """The rows of the group's partitions, kept up from trigger to trigger.

    It has watched the group for half a day when the run begins, and all that arrived had been read: of the commits
    of a partition that is behind then it knows none but the newest.
    """

    def __init__(self, world: World) -> None:
        """Rates, samples and commits of before the start."""
        self.world = world
        scenario, partitions = world.scenario, world.scenario.n_partitions
        self.log_start: Int64s = np.zeros(partitions, np.int64)
        self.log_end: Int64s = np.full(partitions, _FIRST_END, np.int64)
        self.last_stable: Int64s = self.log_end
        self.readable: Int64s = self.log_end
        self.committed: Int64s = np.full(partitions, UNKNOWN, np.int64)
        self.commit_ms: Int64s = np.full(partitions, UNKNOWN, np.int64)
        self.lag_at_commit: Int64s = np.full(partitions, UNKNOWN, np.int64)
        self.arrival_rate: Floats = scenario.mean_rate[0].copy()
        self.drain_rate: Floats = scenario.mean_rate[0].copy()
        self.age_s: Floats = np.zeros(partitions)
        self.at_ms = START_MS
        self._window = no_commits(partitions)
        self._samples = no_samples(partitions)
        for ago_s in _HISTORY_S:
            end = (_FIRST_END - scenario.mean_rate[0] * ago_s).astype(np.int64)
            self._samples = append(self._samples, np.full(partitions, START_MS - ago_s * 1000), end)
        self._samples = append(self._samples, np.full(partitions, START_MS), self.log_end)
        for frames_ago in range(_WATCHED_FRAMES, -1, -1):
            newest = world.commits_before(-float(frames_ago * FRAME_S))
            self._take_commits(*newest, is_known=(scenario.lag == 0) | (frames_ago == 0))

    @property
    def commit_age_s(self) -> Floats:
        """Seconds from the newest commit until now."""
        return (self.at_ms - self.commit_ms) / 1000

    @property
    def pace(self) -> CommitPace:
        """What the last commits say."""
        return commit_pace(self._window)

    def look(self) -> None:
        """A trigger: ask for the log offsets, take in the commits, and measure."""
        world = self.world
        now_ms = START_MS + round(world.now_s * 1000)
        seen_ms = np.full(len(self.log_end), now_ms)
        end = _FIRST_END + np.floor(world.arrived + _ROUNDING).astype(np.int64)
        elapsed_ms = seen_ms - self.at_ms
        self.arrival_rate = arrival_rate(
            self.arrival_rate, difference(end, self.log_end), elapsed_ms, _HALF_LIFE_MS
        )
        self._samples = append(self._samples, seen_ms, end)
        stable = _FIRST_END + np.floor(world.readable + _ROUNDING).astype(np.int64)
        self.readable = readable_offset(stable, stable_before=self.last_stable, end_before=self.log_end)
        self.log_end, self.last_stable, self.at_ms = end, stable, now_ms
        before = self.committed
        self._take_commits(world.committed, world.commit_ms, is_known=np.ones(len(end), np.bool_))
        self.drain_rate = drain_rate(
            self.drain_rate, difference(self.committed, before), elapsed_ms, _HALF_LIFE_MS
        )
        records = lag(self.committed, self.log_start, end)
        self.age_s = lag_age(
            self._samples,
            committed=self.committed,
            log_start=self.log_start,
            lag=records,
            now_ms=now_ms,
            most_gap_ms=_MOST_GAP_MS,
        ).seconds

    def _take_commits(self, read: Floats, made_ms: Int64s, *, is_known: Bools) -> None:
        """The newest commit of each partition where it `is_known`, if it is another than the one seen last."""
        commit_ms = START_MS + made_ms
        is_new = is_known & (commit_ms > self.commit_ms)
        committed = _FIRST_END + np.floor(read - self.world.scenario.lag).astype(np.int64)
        self.committed = np.where(is_new, committed, self.committed)
        self.commit_ms = np.where(is_new, commit_ms, self.commit_ms)
        seen = lag_at_commit(
            self._samples,
            committed=self.committed,
            commit_ms=self.commit_ms,
            log_start=self.log_start,
            log_end=self.log_end,
            readable=self.readable,
            last_stable=self.last_stable,
            most_gap_ms=_MOST_GAP_MS,
        )
        self.lag_at_commit = np.where(is_new, seen, self.lag_at_commit)
        self._window = append_commit(
            self._window,
            committed=self.committed,
            commit_timestamp_ms=self.commit_ms,
            lag=self.lag_at_commit,
            is_new=is_new,
        )
