"""How the lag of each group went: what the tables said after each batch, and what was moved meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.scenario import Scene
from pipeline.operate.demo.snapshot import GroupView, Snapshot

DRAINED_WITHIN_S = 10.0
"""A group is drained when no record that it has not read is older. Between two commits and two looks there is
always some lag; this is more, even on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A group at one time."""

    at_s: float
    """Since the beginning."""
    lag: int
    """Records, all of a partition that has no commit yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCourse:
    """A group from the beginning to the end."""

    group_id: str
    follows: bool
    points: tuple[Point, ...]
    """By time; at least one."""
    was_behind: bool
    """Whether there was anything to drain."""
    drained_s: float | None
    """When it was first seen drained after it was behind, seconds since the beginning; None if it was not."""
    moves_at_s: tuple[float, ...]
    """When each partition changed hands."""


class Course:
    """Collects what is seen. The beginning is when the twins are started."""

    def __init__(self, scene: Scene, *, began_at: datetime) -> None:
        self._scene = scene
        self._began_at = began_at
        self._points: dict[str, list[Point]] = {group.group_id: [] for group in scene.groups}
        self._behind: set[str] = set()
        self._drained_s: dict[str, float] = {}
        self._moves: list[Move] = []

    def saw(self, snapshot: Snapshot) -> None:
        """One look at the tables; a second look at the same batch is none, nor is one before the beginning."""
        if snapshot.seen_at is None or snapshot.seen_at < self._began_at:
            return
        at_s = (snapshot.seen_at - self._began_at).total_seconds()
        for group in snapshot.groups:
            points = self._points.get(group.group_id)
            if points is not None and (not points or points[-1].at_s < at_s):
                points.append(Point(at_s=at_s, lag=group.unread))
                if not _is_drained(group):
                    self._behind.add(group.group_id)
                elif group.group_id in self._behind:
                    self._drained_s.setdefault(group.group_id, at_s)

    def moved(self, moves: Iterable[Move]) -> None:
        """Hand-overs that were seen."""
        self._moves += moves

    def groups(self) -> tuple[GroupCourse, ...]:
        """What became of each group that was seen, in the order of the scene."""
        return tuple(
            GroupCourse(
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
            for group in self._scene.groups
            if self._points[group.group_id]
        )


def _is_drained(group: GroupView) -> bool:
    return group.lag_seconds is not None and group.lag_seconds <= DRAINED_WITHIN_S
