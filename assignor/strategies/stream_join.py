"""Strategy `sticky-stream-join`: partition i of every topic to one member, so that streams can be joined.

What is assigned are partition *numbers*; a member that gets number i gets i of every topic it reads.
"""

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.claims import UNCLAIMED, Ownership
from assignor.model.group import Group
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics
from assignor.strategies.constraints import is_refused
from assignor.strategies.names import STICKY_STREAM_JOIN
from assignor.strategies.sticky.equal import assign_equal


def assign(group: Group) -> Assignment:
    """Numbers 0 .. Q - 1 to members, counts of numbers within one, as many as possible with their owner.

    Q is the partition count of the smallest joined topic. Joined are the topics that have partitions and a
    subscriber; a topic without metadata is left out, or Q would be 0 and the whole group would stop. Members
    that read none of them get no number. A number belongs to the member that claims it in the newest
    generation, in whichever topic; if two do, to none. Own numbers are kept first, then unowned ones are
    given out, and a number is taken from a member only if it has more than its share.

    A number of which a partition is fixed belongs to the owner of that partition, and its other partitions follow. If
    several members hold fixed ones, it belongs to the first of them, and owned partitions of it stay in place.

    Two kinds of partitions come out unassigned by design, each with its reason: those of numbers from Q on,
    whose join partners do not exist yet, and those of a topic that the owner of the number does not read.

    Complexity: O(P + N).

    Source: KIP-315. Its epoch, the maximum received plus one, starts again when it is lost; the generation of
    the group does the same without that (KIP-341).
    """
    joined = (group.topics.counts > 0) & (group.subscriptions.subscriber_counts() > 0)
    if not joined.any():
        return Assignment.complete(group, np.full(group.n_partitions, -1, np.int32))
    n_numbers = int(group.topics.counts[joined].min())
    taking = np.nonzero(group.readers())[0].astype(np.int32)
    first, last = _fixed_at(group)
    numbers = assign_equal(_as_numbers(group, first[:n_numbers], taking)).member
    # The last entry is for index -1: a number that no member may be given.
    assignment = _expand(group, np.append(taking, np.int32(-1))[numbers])
    return _in_place(group, assignment, is_split=first != last) if group.is_constrained() else assignment


def _fixed_at(group: Group) -> tuple[Int32s, Int32s]:
    """The first and the last member that has a fixed partition of each number, -1 for none."""
    n_numbers = int(group.topics.counts.max(initial=0))
    first = np.full(n_numbers, group.n_members, np.int32)
    last = np.full(n_numbers, -1, np.int32)
    fixed = np.nonzero(group.is_fixed())[0] if group.is_constrained() else np.zeros(0, np.int64)
    np.minimum.at(first, group.topics.number_of[fixed], group.owner[fixed])
    np.maximum.at(last, group.topics.number_of[fixed], group.owner[fixed])
    return np.where(last < 0, np.int32(-1), first), last


def _as_numbers(group: Group, fixed_at: Int32s, taking: Int32s) -> Group:
    """The group of the members that read anything, over one topic whose partitions are the numbers."""
    n_numbers = len(fixed_at)
    holder, generation = _owners(group, n_numbers)
    if group.closed is not None:
        # All that a closed member owns is fixed, so it has no other number.
        holder[(holder >= 0) & group.closed[holder]] = -1
    holder = np.where(fixed_at >= 0, fixed_at, holder)
    rank = np.full(group.n_members + 1, -1, np.int32)  # the last entry is for index -1, no member
    rank[taking] = np.arange(len(taking), dtype=np.int32)
    return Group(
        topics=Topics.of({STICKY_STREAM_JOIN: n_numbers}),
        member_ids=tuple(group.member_ids[m] for m in taking),
        subscriptions=Subscriptions.everyone(n_topics=1, n_members=len(taking)),
        ownership=Ownership(
            holder=rank[holder], contested=np.zeros(n_numbers, np.bool_), generation=generation
        ),
        lag=np.zeros(n_numbers, np.int64),
        rate=np.zeros(n_numbers),
        capacity=None,
        fixed=fixed_at >= 0 if group.is_constrained() else None,
        closed=None if group.closed is None else group.closed[taking],
    )


def _owners(group: Group, n_numbers: int) -> tuple[Int32s, Int32s]:
    """Owner of each number, -1 for none, and the generation of the claim."""
    ownership = group.ownership
    claimed = np.nonzero((group.topics.number_of < n_numbers) & (ownership.generation > UNCLAIMED))[0]
    # A topic that joined later has older claims: only the newest generation of a number counts, whatever its topic.
    number = group.topics.number_of[claimed]
    newest = np.full(n_numbers, UNCLAIMED, np.int32)
    np.maximum.at(newest, number, ownership.generation[claimed])
    current = claimed[ownership.generation[claimed] == newest[number]]
    owner = np.full(n_numbers, -1, np.int32)
    np.maximum.at(owner, group.topics.number_of[current], ownership.holder[current])
    # Disagreement shows as a claim that is not the greatest; a contested partition has holder -1.
    differs = ownership.holder[current] != owner[group.topics.number_of[current]]
    owner[group.topics.number_of[current[differs]]] = -1
    return owner, newest


def _expand(group: Group, owner_of_number: Int32s) -> Assignment:
    """Expand the member of each number to each partition, with reasons for partitions without a member."""
    beyond = group.topics.number_of >= len(owner_of_number)
    number = np.minimum(group.topics.number_of, len(owner_of_number) - 1)
    complete = Assignment.complete(group, owner_of_number[number])
    unread = complete.why == Unassigned.NOBODY_SUBSCRIBES
    nobody = complete.member < 0
    does_not_read = ~nobody & ~group.subscriptions.allows(group.topics.topic_of, complete.member)
    assignment = complete.without(nobody & ~unread, why=Unassigned.NOBODY_TAKES)
    assignment = assignment.without(does_not_read & ~unread, why=Unassigned.OWNER_DOES_NOT_READ)
    assignment = assignment.without(beyond & ~unread, why=Unassigned.BEYOND_JOIN)
    return assignment.without(unread, why=Unassigned.NOBODY_SUBSCRIBES)


def _in_place(group: Group, assignment: Assignment, *, is_split: Bools) -> Assignment:
    """The assignment with everything fixed in place, and nothing new for closed members."""
    owned = group.owner >= 0
    refused = is_refused(group, assignment.member)
    stays = group.is_fixed() | (owned & (is_split[group.topics.number_of] | refused))
    held = Assignment(
        member=np.where(stays, group.owner, assignment.member).astype(np.int32),
        why=np.where(stays, np.int8(Unassigned.ASSIGNED), assignment.why),
    )
    return held.without(refused & ~owned, why=Unassigned.NOBODY_TAKES)
