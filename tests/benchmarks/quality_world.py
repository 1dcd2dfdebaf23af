"""A group over time under a policy: what arrives, what is read, what the policy sees, and what its moves cost.

A fluid model in steps of two seconds. A member spreads its rate over its partitions by what lies in them, as a
consumer that fetches all of them does. An eager rebalance stops every partition for 4 s; a partition that moves
stops for 6 s and is read again from its last commit, half a commit interval back. A policy sees lag as commits show it, up
to 5 s old, arrival rates as an average over two minutes, and a member's capacity as the rate it read at while
it had a backlog: nothing of what will come.
"""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.claims import UNCLAIMED, Ownership
from assignor.model.group import Group
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics
from tests.benchmarks.quality_policies import EVERY_S, Policy
from tests.benchmarks.workloads import CAPACITY, FRAME_S, Workload

STEP_S = 2
EAGER_PAUSE_S = 4.0
MOVE_PAUSE_S = 6.0
_REREAD_S = 2.5
_COMMIT_INTERVAL_S = 5.0
_RATES_OVER_S = 120
_CAPACITY_OVER_S = 60
LATE_S = 30.0
"""A partition whose lag is worth more seconds of arrivals than this is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a policy did to one group."""

    lag_seconds: float
    """Record-seconds: lag summed over time."""
    on_time_from_s: float
    """When the last late partition was late for the last time; the end of the film if one still is."""
    worst_delay_s: float
    """Mean over time of the latest partition's lag in seconds of arrivals."""
    moves: int
    """Partitions taken from a member of the group and given to another."""
    r_score: float
    """Arrival rate of what moved over the capacity of one member, summed (Landau et al.)."""
    pause_s: float
    """Partition-seconds without a reader because of rebalances."""
    rebalances: int


class World:
    """The state of one run; `run` is its only use."""

    def __init__(self, film: Workload, policy: Policy, seed: int) -> None:
        """Everything at its start, nothing assigned."""
        self.film, self.policy = film, policy
        # Two sources, so that how often a policy looks does not change what arrives.
        self.arrivals, self.views = np.random.default_rng(seed).spawn(2)
        partitions, members = len(film.topic_of), film.capacity.shape[1]
        self.lag = film.lag.copy()
        self.read_rate = np.zeros(partitions)
        self.rate_seen = film.rate[0] * self.views.uniform(0.8, 1.2, partitions)
        self.capacity_seen = np.full(members, CAPACITY)
        self.member = np.full(partitions, -1, np.int32)
        self.stopped_until_s = np.zeros(partitions)
        self.moves = self.rebalances = 0
        self.r_score = self.pause_s = 0.0

    def run(self) -> Outcome:
        """The whole film."""
        lags, delays, late_s = [], [], 0.0
        for now_s in range(0, self.film.frames * FRAME_S, STEP_S):
            frame = now_s // FRAME_S
            if self._is_due(now_s, frame):
                self._decide(now_s, frame)
            self._step(now_s, frame)
            delay = float((self.lag / np.maximum(self.film.rate[frame], 1.0)).max())
            late_s = now_s + STEP_S if delay > LATE_S else late_s
            lags.append(float(self.lag.sum()))
            delays.append(delay)
        return Outcome(
            lag_seconds=sum(lags) * STEP_S,
            on_time_from_s=late_s,
            worst_delay_s=float(np.mean(delays)),
            moves=self.moves,
            r_score=self.r_score,
            pause_s=self.pause_s,
            rebalances=self.rebalances,
        )

    def _is_due(self, now_s: int, frame: int) -> bool:
        if now_s % FRAME_S == 0 and self._has_changed(frame):
            return True
        return self.policy.every_minute and now_s > 0 and now_s % EVERY_S == 0

    def _has_changed(self, frame: int) -> bool:
        """Have members or partitions come or gone."""
        if frame == 0:
            return True
        film = self.film
        return not (
            np.array_equal(film.joined[frame], film.joined[frame - 1])
            and np.array_equal(film.exists[frame], film.exists[frame - 1])
        )

    def _decide(self, now_s: int, frame: int) -> None:
        members = np.nonzero(self.film.joined[frame])[0]
        partitions = np.nonzero(self.film.exists[frame])[0]
        wanted = self.member.copy()
        wanted[partitions] = members[self.policy.target(self._group(frame, members, partitions))]
        gone = ~np.isin(self.member, members)
        moved = (wanted != self.member) & ~gone
        changed = wanted != self.member
        if changed.any() and (self.member >= 0).any():
            self._pay(now_s, frame, moved, changed)
        self.member = wanted

    def _pay(self, now_s: int, frame: int, moved: Bools, changed: Bools) -> None:
        until = np.where(changed, now_s + MOVE_PAUSE_S, 0.0)
        if self.policy.eager:
            until = np.maximum(until, np.where(self.film.exists[frame], now_s + EAGER_PAUSE_S, 0.0))
        self.pause_s += float(np.maximum(until - np.maximum(self.stopped_until_s, now_s), 0.0).sum())
        self.stopped_until_s = np.maximum(self.stopped_until_s, until)
        self.lag[changed] += _REREAD_S * self.read_rate[changed]
        self.moves += int(moved.sum())
        self.r_score += float(self.film.rate[frame, moved].sum()) / CAPACITY
        self.rebalances += 1

    def _group(self, frame: int, members: Int64s, partitions: Int64s) -> Group:
        counts = np.bincount(self.film.topic_of[partitions])
        uncommitted = self.read_rate * self.views.uniform(0.0, _COMMIT_INTERVAL_S, len(self.lag))
        lag = np.where(self.film.known[frame], self.lag + uncommitted, 0.0)
        position = np.full(self.film.capacity.shape[1] + 1, -1, np.int32)
        position[members] = np.arange(len(members))
        return array_group(
            counts=counts,
            lag=lag[partitions].astype(np.int64),
            rate=self.rate_seen[partitions] if self.policy.knows_rates else np.zeros(len(partitions)),
            capacity=self.capacity_seen[members],
            holder=position[self.member[partitions]],
        )

    def _step(self, now_s: int, frame: int) -> None:
        film, held = self.film, self.member >= 0
        arrived = self.arrivals.poisson(film.rate[frame] * STEP_S).astype(np.float64)
        self.lag += arrived
        reads = held & film.readable[frame] & (self.stopped_until_s <= now_s)
        waiting = np.where(reads, self.lag, 0.0)
        capacity = film.capacity[frame]
        member = np.where(held, self.member, 0)
        asked = np.bincount(member, weights=waiting, minlength=len(capacity))
        share = np.minimum(1.0, capacity * STEP_S / np.maximum(asked, 1e-9))
        read = waiting * share[member]
        self.lag -= read
        self.read_rate += (read / STEP_S - self.read_rate) * (STEP_S / 10)
        self.rate_seen += (arrived / STEP_S - self.rate_seen) * (STEP_S / _RATES_OVER_S)
        # A member without a backlog shows what arrives, not what it could read; one that is down shows nothing.
        busy = (asked > capacity * STEP_S) & (capacity > 0)
        seen = (capacity - self.capacity_seen) * (STEP_S / _CAPACITY_OVER_S)
        self.capacity_seen += np.where(busy, seen, 0.0)


def array_group(*, counts: Int64s, lag: Int64s, rate: Floats, capacity: Floats, holder: Int32s) -> Group:
    """A group in which everybody subscribes to everything, straight from arrays."""
    return Group(
        topics=Topics(names=tuple(f"t{t}" for t in range(len(counts))), counts=counts),
        member_ids=tuple(f"m{m:04}" for m in range(len(capacity))),
        subscriptions=Subscriptions.everyone(n_topics=len(counts), n_members=len(capacity)),
        ownership=Ownership(
            holder=holder,
            contested=np.zeros(len(holder), np.bool_),
            generation=np.where(holder >= 0, 1, UNCLAIMED).astype(np.int32),
        ),
        lag=lag,
        rate=rate,
        capacity=capacity,
    )
