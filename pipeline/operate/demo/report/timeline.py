"""Lag of each group over time from the tables after each batch, and the moves in between."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.scenario import Scenario
from pipeline.operate.demo.snapshot import GroupView, Share, Snapshot

DRAINED_WITHIN_S = 10.0
"""A group is behind if an unread record is older than this, or if as many seconds of arrivals were unread at its
commits: a new log has no old records, however many are unread."""
ONE_POLL_S = 2.0
"""A group is drained if it is not behind, and at most this many seconds of arrivals were unread at its commits: those
of one poll, even on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A group at one time."""

    at_s: float
    """Since the beginning."""
    lag: int
    """Unread records, including all of partitions without a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeline:
    """A group from the beginning to the end."""

    group_id: str
    follows: bool
    points: tuple[Point, ...]
    """Entries by time; at least one."""
    was_behind: bool
    """Whether there was anything to drain."""
    drained_s: float | None
    """When it was drained after it was last behind, seconds since the beginning; None if it was not."""
    moves_at_s: tuple[float, ...]
    """Times of the moves."""


class Timeline:
    """Collects snapshots and moves from the start of the pairs of groups."""

    def __init__(self, scenario: Scenario, *, began_at: datetime) -> None:
        self._scenario = scenario
        self._began_at = began_at
        self._points: dict[str, list[Point]] = {group.group_id: [] for group in scenario.groups}
        self._behind: set[str] = set()
        self._drained_s: dict[str, float] = {}
        self._moves: list[Move] = []

    def saw(self, snapshot: Snapshot) -> None:
        """Add a snapshot, unless it is of the same batch or from before the beginning."""
        if snapshot.seen_at is None or snapshot.seen_at < self._began_at:
            return
        at_s = (snapshot.seen_at - self._began_at).total_seconds()
        for group in snapshot.groups:
            points = self._points.get(group.group_id)
            if points is not None and (not points or points[-1].at_s < at_s):
                points.append(Point(at_s=at_s, lag=group.whole.unread))
                self._judge(group, at_s)

    def _judge(self, group: GroupView, at_s: float) -> None:
        """Record whether the group is behind or drained; between the two nothing changes."""
        if _is_behind(group.whole):
            self._behind.add(group.group_id)
            self._drained_s.pop(group.group_id, None)
        elif group.group_id in self._behind and _is_drained(group.whole):
            self._drained_s.setdefault(group.group_id, at_s)

    def moved(self, moves: Iterable[Move]) -> None:
        """Add moves."""
        self._moves += moves

    def groups(self) -> tuple[GroupTimeline, ...]:
        """The timeline of each group that was seen, in the order of the scenario."""
        return tuple(
            GroupTimeline(
                group_id=group.group_id,
                follows=group.follows,
                points=tuple(self._points[group.group_id]),
                was_behind=group.group_id in self._behind,
                drained_s=self._drained_s.get(group.group_id),
                moves_at_s=tuple(
                    (move.at - self._began_at).total_seconds()
                    for move in self._moves
                    if move.group_id == group.group_id
                ),
            )
            for group in self._scenario.groups
            if self._points[group.group_id]
        )


def _is_behind(group: Share) -> bool:
    """Whether the group is behind, even if the age of its lag is unknown, as it is at first for every older backlog."""
    if group.lag_seconds is None or group.lag_seconds > DRAINED_WITHIN_S:
        return True
    at_commit, arrivals = group.lag_at_commit, group.arrival_rate
    return at_commit is not None and at_commit > DRAINED_WITHIN_S * arrivals > 0


def _is_drained(group: Share) -> bool:
    at_commit = group.lag_at_commit
    return at_commit is not None and at_commit <= ONE_POLL_S * group.arrival_rate
