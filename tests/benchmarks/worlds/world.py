"""The fluid model: what lies in each partition, who reads it, and what its members have done so far.

Arrivals and capacities are constant within a frame. Steps end wherever a pause, a hand-over or a frame does, and are
at most `_STEP_S` long, so that within one nothing changes but which partitions run empty. A partition that moves is
read by nobody from its release until its taker starts; a rebalance stops all of them.
"""

from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.service import served

REBALANCE_S = 4.0
"""How long nobody reads anything in an eager rebalance."""
LATE_S = 60
_STEP_S = 10.0
_NOBODY = -1


@dataclass(slots=True, kw_only=True, eq=False)
class Totals:
    """Sums over the time that has passed."""

    lag_area: float = 0.0
    """Record-seconds."""
    late_partition_s: float = 0.0
    """Partition-seconds with an unread record that is older than `LATE_S`."""
    plan_moves: int = 0
    """Partitions that plans took from one member and gave to another."""
    moves_back: int = 0
    """Those that went back to the member that the plan before took them from, within an hour."""
    rebalances: int = 0
    last_move: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Partition -> when a plan moved it last, and from where."""


class World:
    """The state of one run."""

    def __init__(self, scenario: Scenario) -> None:
        """Everybody at work on what the range assignor gave them."""
        self.scenario = scenario
        partitions = scenario.n_partitions
        self.now_s = 0.0
        self.lag: Floats = scenario.lag.astype(np.float64)
        self.read: Floats = np.zeros(partitions)
        self.arrived: Floats = np.zeros(partitions)
        self.work_done: Floats = np.zeros(scenario.n_members)
        self.owner: Int32s = scenario.range_owners(0)
        self.resumes_s: Floats = np.zeros(partitions)
        self.taker: Int32s = np.full(partitions, _NOBODY, np.int32)
        self.giver: Int32s = np.full(partitions, _NOBODY, np.int32)
        self.read_rate: Floats = np.zeros(partitions)
        self.totals = Totals()
        self._arrived_by = np.vstack([np.zeros(partitions), np.cumsum(scenario.rate * FRAME_S, axis=0)])

    @property
    def frame(self) -> int:
        """The frame of now; the last one at its end."""
        return min(int(self.now_s // FRAME_S), self.scenario.frames - 1)

    @property
    def reads(self) -> Bools:
        """P entries: does somebody read the partition now."""
        return (self.owner >= 0) & (self.resumes_s <= self.now_s)

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        while self.now_s < until_s - 1e-9:
            self._finish_hand_overs()
            later = self.resumes_s[self.resumes_s > self.now_s]
            ends = (
                until_s,
                self.now_s + _STEP_S,
                (self.frame + 1.0) * FRAME_S,
                float(later.min(initial=np.inf)),
            )
            self._step(min(ends))
        self._finish_hand_overs()

    def hand_over(self, partitions: Int64s, taker: Int32s) -> None:
        """Stop reading partitions that have an owner; their takers start after the hand-over."""
        self.giver[partitions] = self.owner[partitions]
        self.owner[partitions] = _NOBODY
        self.taker[partitions] = taker
        self.resumes_s[partitions] = self.now_s + self.scenario.hand_over_s[partitions]

    def rebalance(self, owner: Int32s, *, by_plan: Bools) -> None:
        """Stop everything; unfinished hand-overs are void, everybody goes on with what `owner` says.

        Args:
            owner: Slot of each partition.
            by_plan: P entries: does a change of this partition's owner count as a move of a policy.
        """
        before = np.where(self.owner >= 0, self.owner, self.giver)
        self._count(np.flatnonzero(by_plan & (owner != before)), before, owner)
        self.taker[:] = _NOBODY
        self.owner = owner.astype(np.int32)
        self.resumes_s[:] = self.now_s + REBALANCE_S
        self.totals.rebalances += 1

    def late(self) -> Bools:
        """P entries: is the oldest unread record older than `LATE_S`."""
        then = self.now_s - LATE_S
        before = self._log_end(then) if then >= 0 else then * self.scenario.mean_rate[0]
        # What lay there at the start is a piece of the log before time 0.
        late: Bools = self.read - self.scenario.lag < before - 1e-6
        return late

    def _log_end(self, at_s: float) -> Floats:
        """Records that arrived until then."""
        frame = min(int(at_s // FRAME_S), self.scenario.frames - 1)
        end: Floats = self._arrived_by[frame] + self.scenario.rate[frame] * (at_s - frame * FRAME_S)
        return end

    def _step(self, until_s: float) -> None:
        scenario, frame, length_s = self.scenario, self.frame, until_s - self.now_s
        member, arrived = np.maximum(self.owner, 0), scenario.rate[frame] * length_s
        present = self.lag + arrived
        capacity = scenario.capacity[frame]
        work = served(np.where(self.reads, present * scenario.cost, 0.0), member, capacity * length_s)
        read = np.minimum(work / scenario.cost, present)
        left = present - read
        self.totals.lag_area += float((self.lag + left).sum()) / 2 * length_s
        self.lag = left
        self.read += read
        self.read_rate = read / length_s
        self.arrived += arrived
        self.work_done += np.bincount(member, weights=work, minlength=scenario.n_members)
        self.now_s = until_s
        if until_s % FRAME_S == 0:
            self.totals.late_partition_s += FRAME_S * int(self.late().sum())

    def _finish_hand_overs(self) -> None:
        done = np.flatnonzero((self.taker >= 0) & (self.resumes_s <= self.now_s))
        if not len(done):
            return
        self._count(done, self.giver, self.taker)
        self.owner[done] = self.taker[done]
        self.taker[done] = _NOBODY

    def _count(self, moved: Int64s, giver: Int32s, taker: Int32s) -> None:
        totals = self.totals
        for partition in moved.tolist():
            at_s, origin = totals.last_move.get(partition, (-np.inf, _NOBODY))
            totals.plan_moves += 1
            totals.moves_back += int(origin == taker[partition] and self.now_s - at_s <= 3600)
            totals.last_move[partition] = (self.now_s, int(giver[partition]))
