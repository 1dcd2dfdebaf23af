"""The soonest assignment of a small group, by trying all of them: the judge of `lag-sticky` and of its bound."""

import math

from assignor.model.group import Group
from tests.support.assignors.literal_rules import possible_members


def soonest_s(group: Group, *, max_moves: int | None = None, move_cost_s: float = 0.0) -> float:
    """The least drain time plus price of moves over every assignment with so many moves; `inf` for never.

    What is fixed stays where it is, and closed members are given nothing.

    Partitions by falling lag, one member after the other; a branch ends where it is not better any more.
    """
    assert group.capacity is not None
    capacity = group.capacity.tolist()
    lag, rate = group.lag.tolist(), group.rate.tolist()
    readers = [possible_members(group, pid) for pid in range(group.n_partitions)]
    order = sorted((p for p in range(group.n_partitions) if readers[p]), key=lambda p: (-lag[p], -rate[p]))
    readable = group.readable().tolist()
    if any(readable[p] and not readers[p] and (lag[p] > 0 or rate[p] > 0) for p in range(len(lag))):
        return math.inf
    owner = group.owner.tolist()
    most = len(order) if max_moves is None else max_moves
    loads = [(0.0, 0.0)] * group.n_members
    best = math.inf

    def time_s(member: int) -> float:
        held, arriving = loads[member]
        spare = capacity[member] - arriving
        if spare > 0:
            return held / spare
        return 0.0 if spare == 0 and held == 0 else math.inf

    def place(depth: int, moves: int, slowest_s: float) -> None:
        nonlocal best
        if slowest_s + move_cost_s * moves >= best:
            return
        if depth == len(order):
            best = slowest_s + move_cost_s * moves
            return
        p = order[depth]
        for member in readers[p]:
            more = moves + (owner[p] >= 0 and owner[p] != member)
            if more <= most:
                before = loads[member]
                loads[member] = (before[0] + lag[p], before[1] + rate[p])
                place(depth + 1, more, max(slowest_s, time_s(member)))
                loads[member] = before

    place(0, 0, 0.0)
    return best
