"""A step towards a target that moves more than one plan may: as many of its moves as are allowed, the rest later."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from assignor.evaluation.drain.cost import CostModel
from assignor.evaluation.drain.time import sums_held
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group

_HORIZON_S = 86_400.0


def moves_of(group: Group, member: Int32s) -> Bools:
    """P entries: is the partition taken from an owner that may keep it; what nobody reads is taken from nobody."""
    moved: Bools = (group.owner >= 0) & (member != group.owner)
    return moved


def step_towards(group: Group, target: Assignment, most: int, *, by_number: bool) -> Assignment:
    """The target, or as many of its moves as are allowed, those first that relieve the latest members.

    Args:
        group: Whose target.
        target: Of a strategy.
        most: Most moves.
        by_number: Partitions of one number change hands together; the target where not even the first may.
    """
    moved = moves_of(group, target.member)
    if int(moved.sum()) <= most:
        return target
    made = _numbers_made(group, target, moved, most) if by_number else _made(group, target, moved, most)
    if by_number and not made.any():
        return target
    waits = moved & ~made
    return Assignment(
        member=np.where(waits, group.owner, target.member).astype(np.int32),
        why=np.where(waits, np.int8(0), target.why).astype(np.int8),
        remarks=target.remarks,
    )


def evens_counts(group: Group, member: Int32s, options: Mapping[str, Any]) -> bool:
    """Whether the assignment brings the counts of members closer to what `count_cap` or `counts` ask for."""
    before, after = (
        np.bincount(one[one >= 0], minlength=group.n_members)[group.readers()]
        for one in (group.owner, member)
    )
    if options.get("counts") == "even":
        even = -(-int(before.sum()) // max(len(before), 1))
    elif options.get("count_cap") is not None:
        even = options["count_cap"]
    else:
        return False
    over, left = (int(np.maximum(counts - even, 0).sum()) for counts in (before, after))
    return left < over


def _made(group: Group, target: Assignment, moved: Bools, most: int) -> Bools:
    """P entries: the heaviest from the latest member to the earliest of those that are to get something from it."""
    loads = _Loads(group, np.where(moved, group.owner, target.member))
    waiting: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    weight = group.lag + group.rate
    partitions = np.nonzero(moved)[0]
    # Popped from the end, so the heaviest are last.
    for partition in partitions[np.argsort(weight[partitions], kind="stable")].tolist():
        waiting[int(group.owner[partition])][int(target.member[partition])].append(partition)
    # Arrays, ascending: hundreds of thousands of moves each look at all members.
    givers = np.array(sorted(waiting))
    takers_of = {giver: np.array(sorted(takers)) for giver, takers in waiting.items()}
    made = np.zeros(group.n_partitions, np.bool_)
    for _ in range(most):
        giver = int(givers[loads.latest(givers)])
        takers = takers_of[giver]
        at = loads.earliest(takers)
        taker = int(takers[at])
        left = waiting[giver][taker]
        partition = left.pop()
        made[partition] = True
        loads.move(partition, giver, taker)
        if not left:
            takers_of[giver] = np.delete(takers, at)
            if len(takers) == 1:
                givers = givers[givers != giver]
    return made


def _numbers_made(group: Group, target: Assignment, moved: Bools, most: int) -> Bools:
    """P entries: all moves of as many partition numbers as fit, those first that have a partition without an owner."""
    number = group.topics.number_of
    moves = np.bincount(number[moved], minlength=int(number.max(initial=0)) + 1)
    unowned = np.zeros(len(moves), np.bool_)
    unowned[number[(group.owner < 0) & (target.member >= 0)]] = True
    order = np.lexsort((np.arange(len(moves)), ~unowned))
    fits = np.zeros(len(moves), np.bool_)
    left = most
    for n in order.tolist():
        if moves[n] <= left:
            fits[n] = True
            left -= int(moves[n])
    if (unowned & ~fits).any():
        return np.zeros(group.n_partitions, np.bool_)
    return moved & fits[number]


class _Loads:
    """How late each member is, and how many partitions it holds, kept up to date from move to move."""

    def __init__(self, group: Group, member: Int32s) -> None:
        n = group.n_members
        self._group = group
        self._model = CostModel(horizon_s=_HORIZON_S, floor_s=0.0)
        self._lag = sums_held(group.lag, member, n).tolist()
        self._rate = sums_held(group.rate, member, n).tolist()
        # The last entries, of member -1, are those of nobody, who is never late.
        self._count = np.append(np.bincount(member[member >= 0], minlength=n), 0)
        self._late = np.array([*map(self._late_now, range(n)), 0.0])

    def latest(self, members: Int64s) -> int:
        """Where in `members` the latest is; of several the one with the most partitions, then the first."""
        late = self._late[members]
        alike = np.flatnonzero(late == late.max())
        return int(alike[self._count[members[alike]].argmax()])

    def earliest(self, members: Int64s) -> int:
        """Where in `members` the earliest is; of several the one with the fewest partitions, then the first."""
        late = self._late[members]
        alike = np.flatnonzero(late == late.min())
        return int(alike[self._count[members[alike]].argmin()])

    def move(self, partition: int, giver: int, taker: int) -> None:
        """Count the partition with its new member."""
        for member, sign in ((giver, -1), (taker, 1)):
            if member >= 0:
                self._lag[member] += sign * float(self._group.lag[partition])
                self._rate[member] += sign * float(self._group.rate[partition])
                self._count[member] += sign
                self._late[member] = self._late_now(member)

    def _late_now(self, member: int) -> float:
        """Drain time, or lag where capacities are unknown."""
        capacity, lag = self._group.capacity, self._lag[member]
        if capacity is None:
            return float(lag)
        return self._model.drain_of_one_s(lag, self._rate[member], float(capacity[member]))
