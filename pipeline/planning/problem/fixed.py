"""What no plan may move: pinned partitions, those that cool down after a move, and what silent members hold.

They are fixed in the group that a strategy is asked about, so that its plan is the best around them.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from assignor.evaluation.drain.time import member_drain_s, sums_held
from assignor.model.arrays import Bools
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.name_filter import NameFilter
from pipeline.planning.guards import Guards
from pipeline.planning.problem.capacity import Belief
from pipeline.planning.problem.load import BACKLOG_S
from pipeline.planning.state import GroupState

DAY_MS = 86_400_000


def pinned(group: Group, patterns: tuple[str, ...], ordered: Mapping[str, tuple[int, ...]]) -> Bools:
    """P entries: is the partition pinned, by a topic pattern of the configuration or by an operator's order.

    Args:
        group: Whose partitions.
        patterns: Topics whose partitions stay where they are.
        ordered: Partitions by topic; an empty tuple is all of them (`protocol.commands.Orders.pinned`).
    """
    topics = group.topics
    found = np.zeros(group.n_partitions, np.bool_)
    if not patterns and not ordered:
        return found
    by_pattern = NameFilter(patterns)
    for t, name in enumerate(topics.names):
        if by_pattern.admits(name) or ordered.get(name) == ():
            found[topics.topic_of == t] = True
        elif name in ordered:
            found[(topics.topic_of == t) & np.isin(topics.number_of, ordered[name])] = True
    return found & (group.owner >= 0)


def cooling_down(
    group: Group, beliefs: Mapping[str, Belief], guards: Guards, state: GroupState, *, now_ms: int
) -> Bools:
    """P entries: was the partition moved too recently, or too often in a day, to be moved again.

    One whose owner is seen to drain less than it receives need not rest: the move before it was a mistake. One that was
    moved by a plan that hurt rests for longer, so that others are tried before it; if its owner loses ground and has no
    other, it need not.
    """
    if not state.moved_at_ms and not state.rests_until_ms:
        return np.zeros(group.n_partitions, np.bool_)
    moved = state.moved_at_ms.items()
    resting = _places(group, (name for name, times in moved if now_ms - times[-1] < guards.partition_rest_ms))
    loses = losing_ground(group, beliefs)
    hurt, worn = _hurt(group, state, now_ms=now_ms), _worn(group, guards, state, now_ms=now_ms)
    others = (group.owner >= 0) & (group.rate > 0) & ~(hurt | worn)
    has_other = np.bincount(group.owner[others], minlength=group.n_members) > 0
    found: Bools = (resting & ~loses[group.owner]) | (hurt & ~(loses & ~has_other)[group.owner]) | worn
    return found & (group.owner >= 0)


def barred(group: Group, guards: Guards, state: GroupState, *, now_ms: int) -> Bools:
    """P entries: was the partition moved as often within a day as it may be, or not long ago by a plan that hurt."""
    return _hurt(group, state, now_ms=now_ms) | _worn(group, guards, state, now_ms=now_ms)


def _hurt(group: Group, state: GroupState, *, now_ms: int) -> Bools:
    return _places(group, (name for name, until_ms in state.rests_until_ms.items() if now_ms < until_ms))


def _worn(group: Group, guards: Guards, state: GroupState, *, now_ms: int) -> Bools:
    moved = state.moved_at_ms.items()
    return _places(group, (name for name, times in moved if _is_worn(times, guards, now_ms=now_ms)))


def _is_worn(times: tuple[int, ...], guards: Guards, *, now_ms: int) -> bool:
    return sum(now_ms - at_ms < DAY_MS for at_ms in times) >= guards.partition_moves_per_day


def losing_ground(group: Group, beliefs: Mapping[str, Belief]) -> Bools:
    """N entries: has the member a backlog, and does it drain, as it shows, less than arrives."""
    if group.capacity is None:
        return np.zeros(group.n_members, np.bool_)
    arriving, lag = (sums_held(values, group.owner, group.n_members) for values in (group.rate, group.lag))
    shown = np.array([name in beliefs and beliefs[name].is_shown for name in group.member_ids], np.bool_)
    loses: Bools = shown & (arriving > group.capacity) & (lag > BACKLOG_S * group.capacity)
    return loses


def _places(group: Group, names: Iterable[str]) -> Bools:
    """P entries: is the partition among these, by `state.partition_key`."""
    topics = group.topics
    index, keys = topics.index(), [name.rpartition(":") for name in names]
    indices = topics.partition_indices(
        np.array([index.get(topic, -1) for topic, _, _ in keys], np.int64),
        np.array([int(number) for _, _, number in keys], np.int64),
    )
    found = np.zeros(group.n_partitions, np.bool_)
    found[indices[indices >= 0]] = True
    return found


def silent(group: Group, state: GroupState) -> Bools:
    """N entries: did the member leave a plan unanswered that others accepted."""
    return np.array([member_id in state.silent_since_ms for member_id in group.member_ids], np.bool_)


def standing(group: Group, members: Collection[str]) -> Bools:
    """N entries: does the member stand still (`group.Problem.standing`)."""
    return np.array([member_id in members for member_id in group.member_ids], np.bool_)


def held_by(group: Group, members: Bools) -> Bools:
    """P entries: does one of these members own the partition."""
    held: Bools = np.append(members, False)[group.owner]
    return held & (group.owner >= 0)


def limits(group: Group, target: Assignment) -> bool:
    """Whether the member that drains last under the target holds a fixed partition, and something to read in it.

    Without capacities it is the member with the most lag.
    """
    times_s = member_drain_s(group, target.member)
    if times_s is None:
        times_s = sums_held(group.lag, target.member, group.n_members)
    last = target.member == int(times_s.argmax())
    return bool((group.is_fixed() & last & ((group.lag > 0) | (group.rate > 0))).any())
