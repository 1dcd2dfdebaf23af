"""What is around a group and answers to what it does: a database, cold caches, open transactions, an autoscaler.

From outside none of them is seen: only the commits, the log ends and the members that they lead to.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf

from assignor.model.arrays import Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A store that all members write to: what is asked beyond its knee slows everybody, all alike."""

    knee: float
    """Units of work per second up to which it keeps up."""
    loss: float
    """Share of the knee that it loses when twice as much is asked."""

    def share_done(self, asked: float) -> float:
        """Share of the work per second that gets done."""
        if asked <= self.knee:
            return 1.0
        excess = min((asked - self.knee) / self.knee, 1.0)
        return self.knee * (1 - self.loss * excess) / asked


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """What a new owner goes through with each partition: its records take longer until caches are filled."""

    length_s: float
    times: float
    """Work of a record during it, over the usual."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transactions:
    """A producer whose records can be read when it commits, while the log end shows them as they are written."""

    commits_s: Sequence[float]
    """Rising."""
    of: Bools
    """P entries: does the producer write to the partition."""

    def newest_s(self, at_s: float) -> float:
        """The newest commit, which is the start if there was none since."""
        reached = bisect_right(self.commits_s, at_s)
        return self.commits_s[reached - 1] if reached else 0.0

    def next_s(self, at_s: float) -> float:
        """The next commit; infinite after the last."""
        reached = bisect_right(self.commits_s, at_s)
        return self.commits_s[reached] if reached < len(self.commits_s) else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """So many members as the group's lag takes, as KEDA and the horizontal pod autoscaler count them."""

    lag_per_member: float
    least: int
    interval_s: float = 30.0
    tolerance: float = 0.1
    """Share by which lag may differ from what the members are there for, before their number changes."""
    steady_s: float = 300.0
    """How long fewer must have been enough before members leave."""


@dataclass(slots=True, kw_only=True)
class Replicas:
    """How many members an autoscaler keeps, from look to look."""

    rule: Autoscaler
    most: int
    count: int
    _wanted: deque[tuple[float, int]] = field(default_factory=deque)

    def look(self, now_s: float, lag: float) -> None:
        """Set the number by the lag of now: up at once, to twice as many at most; down after a while."""
        rule, steady_since_s = self.rule, now_s - self.rule.steady_s
        if now_s % rule.interval_s:
            return
        is_near = abs(lag / (rule.lag_per_member * self.count) - 1) <= rule.tolerance
        wanted = self.count if is_near else ceil(lag / rule.lag_per_member)
        self._wanted.append((now_s, min(max(wanted, rule.least), self.most)))
        while self._wanted[0][0] < steady_since_s:
            self._wanted.popleft()
        newest, highest = self._wanted[-1][1], max(number for _, number in self._wanted)
        if newest > self.count:
            self.count = min(newest, 2 * self.count)
        elif highest < self.count:
            self.count = highest
