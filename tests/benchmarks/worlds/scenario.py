"""What happens to a group, whatever the policy: arrivals, capacities, who is there, who follows, what is fixed."""

from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from tests.benchmarks.worlds.commits import Rhythm
from tests.benchmarks.worlds.surroundings import Autoscaler, Database, Transactions, WarmUp

FRAME_S = 30
"""Length of a frame, and of lagwise's trigger: nothing but hand-overs and pauses happens inside one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """F frames of a group with N member slots, over P partitions of topics `t0`, `t1`, …"""

    topic_of: Int32s
    """P entries, rising."""
    cost: Floats
    """P entries: units of work that a record of the partition takes; 1 unless records differ by topic."""
    lag: Floats
    """P entries: records at the start."""
    rate: Floats
    """F x P: records/s that arrive."""
    mean_rate: Floats
    """F x P: the same without noise."""
    capacity: Floats
    """F x N: units of work per second, without noise; 0 while the member stands still."""
    jitter: Floats
    """F x N: noise of the capacity, a factor."""
    hung: Bools
    """F x N: is the member stopped altogether, so that it neither reads nor commits nor answers; it stays in the group."""
    commits: tuple[Rhythm, ...]
    """N entries: when the member commits."""
    joined: Bools
    """F x N: is the member in the group."""
    follows: Bools
    """N entries: does the member follow plans, or has it never heard of them."""
    pinned: Bools
    """P entries: fixed to the first owner by an operator's order."""
    hears_s: Floats
    """N entries: from an evaluation until the member has read its plan and accepted."""
    hand_over_s: Floats
    """P entries: how long nobody reads the partition when it moves within a generation."""
    database: Database | None = None
    warm_up: WarmUp | None = None
    transactions: Transactions | None = None
    autoscaler: Autoscaler | None = None
    """Decides how many of those that `joined` there are: the first slots."""

    @property
    def frames(self) -> int:
        """F."""
        return len(self.rate)

    @property
    def horizon_s(self) -> int:
        """Length of the whole."""
        return self.frames * FRAME_S

    @property
    def n_members(self) -> int:
        """N."""
        return self.capacity.shape[1]

    @property
    def n_partitions(self) -> int:
        """P."""
        return len(self.topic_of)

    def budget(self, frame: int) -> Floats:
        """N entries: units of work per second, with noise."""
        budget: Floats = self.capacity[frame] * self.jitter[frame]
        return budget

    @property
    def number_of(self) -> Int32s:
        """P entries: the partition's number in its topic."""
        first = np.searchsorted(self.topic_of, self.topic_of)
        return (np.arange(self.n_partitions) - first).astype(np.int32)

    def range_owners(self, frame: int) -> Int32s:
        """Slot of each partition as the range assignor gives it to the members of the frame."""
        return range_owners(self.topic_of, np.flatnonzero(self.joined[frame]))


def range_owners(topic_of: Int32s, slots: Int64s) -> Int32s:
    """Per topic, consecutive partitions to the slots in order; the first ones get one more."""
    owners = np.empty(len(topic_of), np.int32)
    for topic in np.unique(topic_of):
        pids = np.flatnonzero(topic_of == topic)
        owners[pids] = np.concatenate(
            [
                np.full(len(part), slot)
                for slot, part in zip(slots, np.array_split(pids, len(slots)), strict=True)
            ]
        )
    return owners
