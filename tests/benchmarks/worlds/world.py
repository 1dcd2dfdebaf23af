"""The fluid model: what lies in each partition, who reads it, and what its members have done so far.

Arrivals and capacities are constant within a frame. Steps end wherever a pause, a hand-over or a frame does, and are
at most `_STEP_S` long, so that within one nothing changes but which partitions run empty. A partition that moves is
read by nobody from its release until its taker starts; a rebalance stops all of them.

Members commit by their rhythms. Positions are straight lines within a step, so the newest commit in it is known without
shorter steps; earlier ones of the same step nobody sees. A partition is committed when it is released, and so is
everything that a living member has when the group rebalances. A member that has left or hangs does not commit. As a
simplification its successor goes on where it stopped, not at its last commit: nothing is read twice.
"""

from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario, range_owners
from tests.benchmarks.worlds.service import served
from tests.benchmarks.worlds.surroundings import Replicas

REBALANCE_S = 4.0
"""How long nobody reads anything in an eager rebalance."""
LATE_S = 60
_STEP_S = 10.0
_NOBODY = -1


@dataclass(slots=True, kw_only=True, eq=False)
class Totals:
    """Sums over the time that has passed."""

    lag_area: float = 0.0
    """Record-seconds of what can be read: not of what an open transaction holds back."""
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
        scaler, most = scenario.autoscaler, scenario.n_members
        self.replicas = Replicas(rule=scaler, most=most, count=scaler.least) if scaler is not None else None
        self.owner: Int32s = self.range_owners()
        self.resumes_s: Floats = np.zeros(partitions)
        self.warm_s: Floats = np.zeros(partitions)
        """When the owner's caches are filled."""
        self.taker: Int32s = np.full(partitions, _NOBODY, np.int32)
        self.giver: Int32s = np.full(partitions, _NOBODY, np.int32)
        self.read_by: Floats = np.zeros(scenario.n_members)
        """Records each member has read."""
        self.committed, self.commit_ms = self.commits_before(0.0)
        """What the newest commit says of `read`, < 0 before the start, and when it was made; the start is 0."""
        self.shown_capacity: Floats = scenario.capacity[0].copy()
        """What each member's capacity was when it committed last, with a partition to commit or without."""
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

    @property
    def joined(self) -> Bools:
        """N entries: is the member in the group."""
        joined: Bools = self.scenario.joined[self.frame]
        if self.replicas is None:
            return joined
        return joined & (np.arange(self.scenario.n_members) < self.replicas.count)

    @property
    def alive(self) -> Bools:
        """N entries: is the member there, and does it not hang."""
        return self.joined & ~self.scenario.hung[self.frame]

    def range_owners(self) -> Int32s:
        """Slot of each partition as the range assignor gives it to the members of now."""
        return range_owners(self.scenario.topic_of, np.flatnonzero(self.joined))

    def scale(self) -> None:
        """Let the autoscaler look at the lag that commits show."""
        if self.replicas is not None:
            self.replicas.look(self.now_s, float((self.scenario.lag + self.arrived - self.committed).sum()))

    def commits_before(self, at_s: float) -> tuple[Floats, Int64s]:
        """Newest commit of each partition as of a time at or before the start, as `committed` and `commit_ms`.

        Until the start everything was read as it arrived, but what lies there then, which nobody read.
        """
        commit_s = self._commit_s_before(at_s)[self.owner]
        rate = self.scenario.mean_rate[0]
        return np.where(self.scenario.lag > 0, 0.0, rate * commit_s), _up_to_ms(commit_s)

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        while self.now_s < until_s - 1e-9:
            self._finish_hand_overs()
            self._step(min(until_s, self._next_s()))
        self._finish_hand_overs()

    def hand_over(self, partitions: Int64s, taker: Int32s) -> None:
        """Commit and stop reading partitions that have an owner; their takers start after the hand-over."""
        self._commit(partitions)
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
        self._commit(np.flatnonzero(self.reads & self.alive[self.owner]))
        self._count(np.flatnonzero(by_plan & (owner != before)), before, owner)
        self._chill(np.flatnonzero(owner != before), self.now_s + REBALANCE_S)
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

    def _next_s(self) -> float:
        """When the step ends that begins now, unless it is cut."""
        later = [float(at_s[at_s > self.now_s].min(initial=np.inf)) for at_s in (self.resumes_s, self.warm_s)]
        transactions = self.scenario.transactions
        commit_s = transactions.next_s(self.now_s) if transactions is not None else np.inf
        return min(self.now_s + _STEP_S, (self.frame + 1.0) * FRAME_S, commit_s, *later)

    @property
    def readable(self) -> Floats:
        """Records that arrived and that no open transaction holds back now."""
        return self.arrived - self._held(self.now_s)

    def _held(self, at_s: float) -> Floats:
        """Records that an open transaction holds back at a time of the step that begins now."""
        transactions = self.scenario.transactions
        if transactions is None:
            return np.zeros(self.scenario.n_partitions)
        begun_s = transactions.newest_s(self.now_s)
        return np.where(transactions.of, self._log_end(at_s) - self._log_end(begun_s), 0.0)

    def _work_times(self) -> Floats:
        """P entries: work of a record over the usual."""
        warm_up = self.scenario.warm_up
        return np.where(self.warm_s > self.now_s, warm_up.times if warm_up is not None else 1.0, 1.0)

    def _chill(self, partitions: Int64s, from_s: float) -> None:
        """Let partitions have an owner whose caches are empty."""
        if self.scenario.warm_up is not None:
            self.warm_s[partitions] = from_s + self.scenario.warm_up.length_s

    def _step(self, until_s: float) -> None:
        scenario, frame, length_s = self.scenario, self.frame, until_s - self.now_s
        member, arrived = np.maximum(self.owner, 0), scenario.rate[frame] * length_s
        present, times = self.lag + arrived, self._work_times()
        cost, held_before, held = scenario.cost * times, self._held(self.now_s), self._held(until_s)
        waiting = np.where(self.reads, np.maximum(present - held, 0.0) * cost, 0.0)
        work = served(waiting, member, scenario.budget(frame) * self.joined * length_s)
        if scenario.database is not None:
            work = work * scenario.database.share_done(float(work.sum()) / length_s)
        read = np.minimum(work / cost, present)
        left = present - read
        self.totals.lag_area += float((self.lag + left - held_before - held).sum()) / 2 * length_s
        self.lag = left
        self.read += read
        self.arrived += arrived
        self.work_done += np.bincount(member, weights=work / times, minlength=scenario.n_members)
        self._commit_by_rhythm(until_s, member, read / length_s)
        self.now_s = until_s
        if until_s % FRAME_S == 0:
            self.totals.late_partition_s += FRAME_S * int(self.late().sum())

    def _commit_by_rhythm(self, until_s: float, member: Int32s, rate: Floats) -> None:
        """The commits of the step that ends at `until_s`, before the time is set to that."""
        rate_by = np.bincount(member, weights=rate, minlength=self.scenario.n_members)
        self.read_by += rate_by * (until_s - self.now_s)
        newest_s = self._newest_s(until_s, read=self.read_by, rate=rate_by)
        commits = self.alive & (newest_s > self.now_s)
        self.shown_capacity[commits] = self.scenario.capacity[self.frame][commits]
        committed = np.flatnonzero(self.reads & commits[member])
        commit_s = newest_s[member[committed]]
        self.committed[committed] = self.read[committed] - rate[committed] * (until_s - commit_s)
        self.commit_ms[committed] = _up_to_ms(commit_s)

    def _commit(self, partitions: Int64s) -> None:
        """Commit partitions out of turn."""
        self.committed[partitions] = self.read[partitions]
        self.commit_ms[partitions] = _up_to_ms(np.full(len(partitions), self.now_s))

    def _commit_s_before(self, at_s: float) -> Floats:
        """Time of each member's newest commit as of a time at or before the start."""
        rate = np.bincount(self.owner, weights=self.scenario.mean_rate[0], minlength=self.scenario.n_members)
        return self._newest_s(at_s, read=rate * at_s, rate=rate)

    def _newest_s(self, until_s: float, *, read: Floats, rate: Floats) -> Floats:
        """Time of each member's newest commit, as if it had always read at this rate."""
        members = zip(self.scenario.commits, read.tolist(), rate.tolist(), strict=True)
        return np.array([rhythm.newest_s(until_s, read=of, rate=at) for rhythm, of, at in members])

    def _finish_hand_overs(self) -> None:
        done = np.flatnonzero((self.taker >= 0) & (self.resumes_s <= self.now_s))
        if not len(done):
            return
        self._count(done, self.giver, self.taker)
        self._chill(done, self.now_s)
        self.owner[done] = self.taker[done]
        self.taker[done] = _NOBODY

    def _count(self, moved: Int64s, giver: Int32s, taker: Int32s) -> None:
        totals = self.totals
        for partition in moved.tolist():
            at_s, origin = totals.last_move.get(partition, (-np.inf, _NOBODY))
            totals.plan_moves += 1
            totals.moves_back += int(origin == taker[partition] and self.now_s - at_s <= 3600)
            totals.last_move[partition] = (self.now_s, int(giver[partition]))


def _up_to_ms(at_s: Floats) -> Int64s:
    """Whole milliseconds, rounded up: what was read by then had arrived."""
    milliseconds: Int64s = np.ceil(at_s * 1000 - 1e-3).astype(np.int64)
    return milliseconds
