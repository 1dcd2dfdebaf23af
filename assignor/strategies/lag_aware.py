"""Strategy `lag-aware`: even counts in every topic, and within them the largest lag placed first (KIP-169).

One topic at a time, partitions by falling lag go to the subscriber with the fewest partitions of that topic,
then the least lag, then the first in member order. So every subscriber gets one partition before any gets a
second: the rule runs in *rounds*. While a round lasts only members that have not had their turn
compete and their totals do not change, so a round is one step: the next n partitions by falling lag onto the
n subscribers by (total lag, member order). That is computed here; it equals the rule partition by partition.

The rule is Graham's LPT (1969), largest processing time first to the least loaded machine, with counts kept even.

Example: one topic with lags 9, 7, 6, 5, 2 and members a and b. Round one: 9 to a, 7 to b. Round two: b has less, so
6 goes to b and 5 to a. Totals are 14 and 13, and 2 goes to b.

    >>> import numpy as np
    >>> from assignor.model.members import Member, build_group
    >>> from assignor.model.topics import Topics
    >>> members = [Member(member_id=name, topics=("t",)) for name in "ab"]
    >>> group = build_group(topics=Topics.of({"t": 5}), members=members, lag=np.array([9, 7, 6, 5, 2]))
    >>> assign(group).member.tolist()
    [0, 1, 1, 0, 1]
"""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from assignor.model.arrays import Int32s, Int64s
from assignor.model.assignment import Assignment
from assignor.model.group import Group

Scope: TypeAlias = Literal["topic", "group"]
Ties: TypeAlias = Literal["lag", "kip"]

_PlaceTopic: TypeAlias = Callable[[Int64s, Int64s, Int64s, Int32s], Int32s]

# Up to here sorting a Python list takes less time than the overhead of numpy's calls.
_FEW_MEMBERS = 12
# A round over less than this part of the members is selected; a full one is sorted.
_SHORT_ROUND = 8


def assign(group: Group, *, scope: Scope = "topic", ties: Ties = "lag") -> Assignment:
    """Every partition with a subscriber to a member; counts per topic differ by at most one.

    Let a round meet totals l_1 <= ... <= l_n with lags b_1 >= ... >= b_n, a last short round padded with zeros.
    Afterwards members i < j differ by (b_i - b_j) - (l_j - l_i), which lies between minus the spread before and
    b_1 - b_n. So no two subscribers of a topic end further apart in its lag than the widest round, and the
    largest total is at most the mean plus (1 - 1/n) of that: within 2 - 1/n of the best.

    What is fixed is counted first, with its lag, and the rule deals the rest on top of it; none of this holds then.

    Args:
        group: Lag counts, owners do not: the strategy is not sticky.
        scope: "topic" is the proposal: totals start at 0 with every topic, so the heaviest partition of each
            topic goes to the same first member. "group" carries totals over the topics, which are taken by
            falling total lag, then name.
        ties: "lag" breaks every tie of counts by lag, as the proposal's prototype does. "kip" is step iii to the
            letter: lag is looked at only when *all* takers have equal counts, so it places the first partition of a
            round and member order the others. Counts are as even, lag is less so, and the bounds above do not hold.

    Complexity: O(P log P).

    Source: KIP-169.
    """
    order = _by_falling_lag(group)
    if group.is_constrained() or ties == "kip":
        place_topic = _place_to_the_letter if ties == "kip" else _place_one_by_one
        return Assignment.complete(group, _place_on_top(group, order, scope, place_topic))
    place = _place_topics_apart if scope == "topic" else _place_topics_together
    return Assignment.complete(group, place(group, order))


def _by_falling_lag(group: Group) -> Int64s:
    """All partition indices: topics in order, inside a topic by falling lag, then partition number."""
    return np.lexsort((-group.lag, group.topics.topic_of))


def _place_topics_apart(group: Group, order: Int64s) -> Int32s:
    """Totals of 0 at the start of every topic: round one is in member order, for all topics at once."""
    subscriptions, offsets, topic = group.subscriptions, group.topics.offsets, group.topics.topic_of
    readers = subscriptions.subscriber_counts()
    rank = np.arange(len(order)) - offsets[topic]
    first = np.nonzero(rank < readers[topic])[0]
    member = np.full(len(order), -1, np.int32)
    row = subscriptions.offsets[subscriptions.set_of_topic[topic[first]]]
    member[order[first]] = subscriptions.members[row + rank[first]]
    # Only topics with more partitions than readers have a second round, and only there do totals matter.
    for t in np.nonzero((group.topics.counts > readers) & (readers > 0))[0].tolist():
        n = int(readers[t])
        start = int(offsets[t])
        rest = order[start + n : int(offsets[t + 1])]
        total = group.lag[order[start : start + n]]
        member[rest] = subscriptions.of_topic(t)[_place(group.lag[rest], total)]
    return member


def _place_topics_together(group: Group, order: Int64s) -> Int32s:
    """Totals carried from topic to topic, the topics by falling total lag, then name."""
    offsets = group.topics.offsets
    total = np.zeros(group.n_members, np.int64)
    member = np.full(len(order), -1, np.int32)
    for t in _topics_by_lag(group):
        readers = group.subscriptions.of_topic(t)
        if len(readers) > 0:
            partitions = order[int(offsets[t]) : int(offsets[t + 1])]
            carried = total[readers]
            member[partitions] = readers[_place(group.lag[partitions], carried)]
            total[readers] = carried
    return member


def _topics_by_lag(group: Group) -> list[int]:
    """Topics by falling total lag, then name."""
    offsets = group.topics.offsets
    # Differences of one cumulative sum stay right for topics without partitions, where `reduceat` would not.
    summed = np.concatenate((np.zeros(1, np.int64), np.cumsum(group.lag)))
    by_lag: list[int] = np.argsort(-(summed[offsets[1:]] - summed[offsets[:-1]]), kind="stable").tolist()
    return by_lag


def _place_on_top(group: Group, order: Int64s, scope: Scope, place_topic: _PlaceTopic) -> Int32s:
    """The rule one partition at a time, on top of what is fixed; closed members are given nothing.

    With scope "group" the totals start with all that is fixed, in whichever topic.
    """
    offsets, n = group.topics.offsets, group.n_members
    member: Int32s = np.where(group.is_fixed(), group.owner, -1).astype(np.int32)
    total = _fixed_lag(group, member, np.nonzero(member >= 0)[0])
    for t in _topics_by_lag(group):
        partitions = order[int(offsets[t]) : int(offsets[t + 1])]
        takers = group.takers.of_topic(t)
        is_held = member[partitions] >= 0
        if len(takers) == 0 or is_held.all():
            continue
        held, free = partitions[is_held], partitions[~is_held]
        if scope == "topic":
            total = _fixed_lag(group, member, held)
        count = np.bincount(member[held], minlength=n)
        member[free] = takers[place_topic(group.lag[free], total, count, takers)]
    return member


def _fixed_lag(group: Group, member: Int32s, held: Int64s) -> Int64s:
    """Lag of the partitions `held`, by member."""
    total = np.zeros(group.n_members, np.int64)
    np.add.at(total, member[held], group.lag[held])
    return total


def _place_one_by_one(lag: Int64s, total: Int64s, count: Int64s, takers: Int32s) -> Int32s:
    """Position in `takers` of the member of each entry of the falling `lag`; `total` is brought up to date."""
    heap = [(int(count[m]), int(total[m]), position) for position, m in enumerate(takers.tolist())]
    heapq.heapify(heap)
    placed = []
    for records in lag.tolist():
        held, carried, position = heap[0]
        heapq.heapreplace(heap, (held + 1, carried + records, position))
        placed.append(position)
        total[takers[position]] = carried + records
    return np.array(placed, np.int32)


def _place_to_the_letter(lag: Int64s, total: Int64s, count: Int64s, takers: Int32s) -> Int32s:
    """The same as `_place_one_by_one`, but lag decides only while all counts are equal, else member order."""
    counts = count[takers].tolist()
    placed = []
    waiting: deque[int] = deque()
    for records in lag.tolist():
        if not waiting:
            # One pass over the members for a partition of each, so counts are not compared for every partition.
            least = min(counts)
            waiting = deque(position for position, held in enumerate(counts) if held == least)
            if len(waiting) == len(counts):
                first = min(waiting, key=lambda position: int(total[takers[position]]))
                waiting.remove(first)
                waiting.appendleft(first)
        position = waiting.popleft()
        counts[position] += 1
        total[takers[position]] += records
        placed.append(position)
    return np.array(placed, np.int32)


def _place(lag: Int64s, total: Int64s) -> Int32s:
    """Place falling `lag` in rounds over len(total) members; `total` is brought up to date.

    Returns:
        Position in `total` of the member of each entry of `lag`.
    """
    # A lag of 0 changes no total, so from the first round of zeros on every round is alike.
    n_rounds = -(-int(np.count_nonzero(lag)) // len(total))
    lagging = lag[: n_rounds * len(total)]
    rounds = _rounds_of_few if len(total) <= _FEW_MEMBERS else _rounds
    placed = rounds(lagging, total)
    rest = len(lag) - len(lagging)
    if rest == 0:
        return placed
    again = np.resize(_least(total, min(rest, len(total))), rest)
    return np.concatenate((placed, again.astype(np.int32)))


def _least(total: Int64s, k: int) -> Int64s:
    """Positions of the k least totals, by (total, position)."""
    if 0 < k <= len(total) // _SHORT_ROUND:
        # Selection takes O(n); with everything up to the k-th value kept, ties still go by position.
        candidates = np.nonzero(total <= np.partition(total, k - 1)[k - 1])[0]
        return candidates[np.argsort(total[candidates], kind="stable")][:k]
    return np.argsort(total, kind="stable")[:k]


def _rounds(lag: Int64s, total: Int64s) -> Int32s:
    # No member has two turns in a round, so adding by index writes no entry of `total` twice.
    chosen = np.empty(len(lag), np.int32)
    n = len(total)
    for start in range(0, len(lag), n):
        block = lag[start : start + n]
        turn = _least(total, len(block))
        chosen[start : start + n] = turn
        total[turn] += block
    return chosen


def _rounds_of_few(lag: Int64s, total: Int64s) -> Int32s:
    lags, totals = lag.tolist(), total.tolist()
    members = range(len(totals))
    chosen: list[int] = []
    for start in range(0, len(lags), len(totals)):
        block = lags[start : start + len(totals)]
        turn = sorted(members, key=totals.__getitem__)[: len(block)]
        chosen.extend(turn)
        for m, records in zip(turn, block, strict=True):
            totals[m] += records
    total[:] = totals
    return np.array(chosen, np.int32)
