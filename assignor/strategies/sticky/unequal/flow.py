"""The residual network between subscriber sets and members, and augmenting paths through it, on bitsets.

Nodes are members and subscriber sets. The topics of one subscriber set are one node, because any of its partitions can
stand in for any other; the flow from set to member is the number of its partitions that the member gets. An
*augmenting path* starts at a member with too many partitions: it loses one of some set to another reader of that set,
which loses one of another set in turn, until a member is reached that has too few. Paths of one length are found
together, level by level (Dinic 1970).

Members and sets are bits of Python integers: all readers of a set join a level by one `|`, and a dead end is removed
for every path by one `&`. So the eligible pairs, which are the many, are never visited one by one.

Taking a partition from its owner costs 1, giving it back -1, any other step nothing. Potentials of members and sets
say which steps lie on a cheapest path (primal-dual algorithm, Ford and Fulkerson 1957): a step from u to v is
*admissible* when its cost is potential(u) - potential(v), and no step costs less than that. Potentials start at 0; when
no admissible path leads to a member that has too few, they rise by one on all that was reached.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int32s


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones, ascending."""
    while mask:
        # In two's complement a number and its negative share just the lowest one.
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def bitsets(table: Bools) -> list[int]:
    """One integer for each row of a table, bit i for column i."""
    # Whole rows at a time: setting one bit of a Python integer copies all of it, so bit by bit a row is quadratic.
    packed = np.packbits(table, axis=1, bitorder="little")
    width, data = packed.shape[1], packed.tobytes()
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(len(packed))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Members and subscriber sets, as bits, that admissible paths reach; no member among them has too few."""

    members: int
    sets: int


class FlowNetwork:
    """The flow, its residual network, and the potentials.

    Args:
        flow: Subscriber sets x members: partitions of the set that the member gets. Changed in place.
        owned: Subscriber sets x members: partitions of the set that the member owns from before.
        readers: For each set, as bits, the members that may get one more from it.
        first_slack: Sets from this one on stand for slack: they give a member at most one unit, and own none.
    """

    __slots__ = (
        "_beyond_owned",
        "_first_slack",
        "_flow",
        "_member_potential",
        "_members_at",
        "_owned",
        "_readers",
        "_revoked",
        "_set_potential",
        "_sets_at",
        "_within_owned",
    )

    def __init__(self, flow: Int32s, owned: Int32s, *, readers: list[int], first_slack: int) -> None:
        n_sets, n_members = flow.shape
        # A memoryview reads and writes single cells of an array at half the price of the array itself.
        self._flow, self._owned = flow.data, owned.data
        self._readers = readers
        self._first_slack = first_slack
        # Which step costs what: members of a set that have lost owned partitions (giving one back: -1), sets of a
        # member with owned partitions only (taking one: 1), and with others besides (taking one of those: 0).
        self._revoked = bitsets(flow < owned)
        self._within_owned = bitsets(((flow > 0) & (flow <= owned)).T)
        self._beyond_owned = bitsets((flow > owned).T)
        self._set_potential = [0] * n_sets
        self._member_potential = [0] * n_members
        # The last entry stays 0: it is read at index -1 and one past the greatest potential.
        self._sets_at: list[int] = [(1 << n_sets) - 1, 0]
        self._members_at: list[int] = [(1 << n_members) - 1, 0]

    def augment(self, excess: list[int], *, inside: int) -> Reached | None:
        """Augment along admissible paths as long as any leads from a member with too many to one with too few.

        Args:
            excess: Partitions each member has beyond its target, below 0 if it lacks some. Changed in place.
            inside: Members that take part, as bits.

        Returns:
            None if no member inside has too many, or none too few; otherwise everything that paths reach, in vain.
        """
        sources, sinks = _sources_and_sinks(excess, inside)
        # A pass leaves no path of the present length, so those of the next are longer: no more passes than members.
        while sources and sinks:
            members, sets = self._levels(sources, sinks, inside)
            if not members[-1] & sinks:
                return Reached(members=_union(members), sets=_union(sets))
            # Paths end in the last level, so members there that are no sinks are dead ends.
            members[-1] &= sinks
            for source in bits(sources):
                self._augment_from(source, excess, members, sets)
            sources, sinks = _sources_and_sinks(excess, sources | sinks)
        return None

    def raise_potentials(self, reached: Reached) -> None:
        """Raise what was reached in vain by one, which makes the next cheapest steps out of it admissible."""
        # Costs are whole numbers: each step out of what was reached costs one too much at least, so one is safe.
        for m in bits(reached.members):
            self._member_potential[m] += 1
        for s in bits(reached.sets):
            self._set_potential[s] += 1
        _raise(self._members_at, reached.members)
        _raise(self._sets_at, reached.sets)

    def _may_lose(self, m: int) -> int:
        """Sets of which a member may lose one partition by an admissible step."""
        # Costs 0 and 1: to sets of the member's own potential, and, for partitions it owns, to those one below.
        potential = self._member_potential[m]
        at = self._sets_at
        return (self._beyond_owned[m] & at[potential]) | (self._within_owned[m] & at[potential - 1])

    def _may_gain(self, s: int) -> int:
        """Members that may get one partition more of a set by an admissible step."""
        # Costs 0 and -1: to members of the set's own potential, and, where one is given back, to those one above.
        potential, revoked = self._set_potential[s], self._revoked[s]
        at = self._members_at
        return (self._readers[s] & ~revoked & at[potential]) | (revoked & at[potential + 1])

    def _levels(self, sources: int, sinks: int, inside: int) -> tuple[list[int], list[int]]:
        """The level graph: members and sets by distance from the sources, up to the first level with a sink."""
        # -1 has all bits: no set was reached before.
        members, sets = [sources], []
        new_members, new_sets = inside & ~sources, -1
        while members[-1] and not members[-1] & sinks:
            level = 0
            for m in bits(members[-1]):
                level |= self._may_lose(m)
            level &= new_sets
            new_sets &= ~level
            sets.append(level)
            level = 0
            for s in bits(sets[-1]):
                level |= self._may_gain(s)
            level &= new_members
            new_members &= ~level
            members.append(level)
        return members, sets

    def _augment_from(self, source: int, excess: list[int], members: list[int], sets: list[int]) -> None:
        """Augment from one source until it is at its target or no path is left in the level graph."""
        while excess[source] > 0:
            path = self._path(source, members, sets)
            if not path:
                return
            sink = path[-1]
            amount = min(excess[source], -excess[sink], self._bottleneck(path))
            for at in range(0, len(path) - 2, 2):
                self._push(path[at + 1], path[at], path[at + 2], amount)
            excess[source] -= amount
            excess[sink] += amount
            # A sink that has enough leaves the last level, or a later path of this pass would end in it.
            if excess[sink] == 0:
                members[-1] &= ~(1 << sink)

    def _path(self, source: int, members: list[int], sets: list[int]) -> list[int]:
        """Member, set, member, set, ..., member through all levels; empty when there is none.

        A node that leads nowhere is removed from its level, so that no later path tries it again.
        """
        path = [source]
        depth = 0
        while depth < len(sets):
            here = self._may_lose(path[-1]) & sets[depth]
            if here:
                low = here & -here
                s = low.bit_length() - 1
                there = self._may_gain(s) & members[depth + 1]
                if there:
                    path += (s, (there & -there).bit_length() - 1)
                    depth += 1
                else:
                    # Each node is removed once at most, so dead ends take S + N steps of a pass, whatever the paths.
                    sets[depth] &= ~low
            elif depth == 0:
                return []
            else:
                members[depth] &= ~(1 << path[-1])
                del path[-2:]
                depth -= 1
        return path

    def _bottleneck(self, path: list[int]) -> int:
        """Units that can go along a path before one of its steps changes its cost."""
        flow, owned = self._flow, self._owned
        amount = 1 << 62
        for at in range(0, len(path) - 2, 2):
            from_member, s, to_member = path[at : at + 3]
            held, own = flow[s, from_member], owned[s, from_member]
            # What is not owned goes first, because it costs nothing; owned ones after it cost 1 each.
            amount = min(amount, held - own if held > own else held)
            revoked = owned[s, to_member] - flow[s, to_member]
            if revoked > 0:
                amount = min(amount, revoked)
        return amount

    def _push(self, s: int, from_member: int, to_member: int, amount: int) -> None:
        self._flow[s, from_member] -= amount
        self._flow[s, to_member] += amount
        # Slack is one unit a member: whoever has it can lose it, and cannot get another.
        if s >= self._first_slack:
            self._readers[s] = (self._readers[s] | 1 << from_member) & ~(1 << to_member)
        self._mark(s, from_member)
        self._mark(s, to_member)

    def _mark(self, s: int, m: int) -> None:
        """Bring the bits of one set and member in line with the flow between them."""
        held, own = self._flow[s, m], self._owned[s, m]
        of_set, of_member = 1 << s, 1 << m
        beyond, within, revoked = self._beyond_owned[m], self._within_owned[m], self._revoked[s]
        self._beyond_owned[m] = beyond | of_set if held > own else beyond & ~of_set
        self._within_owned[m] = within | of_set if 0 < held <= own else within & ~of_set
        self._revoked[s] = revoked | of_member if held < own else revoked & ~of_member


def _sources_and_sinks(excess: list[int], members: int) -> tuple[int, int]:
    """Return which of these members have too many and which too few, as bits."""
    sources = sinks = 0
    for m in bits(members):
        if excess[m] > 0:
            sources |= 1 << m
        elif excess[m] < 0:
            sinks |= 1 << m
    return sources, sinks


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _raise(at: list[int], reached: int) -> None:
    """Move what was reached from the masks of its potentials to those of the potentials one higher."""
    at.append(0)
    # From the top down, so that nothing rises twice.
    for potential in range(len(at) - 2, 0, -1):
        at[potential] = (at[potential] & ~reached) | (at[potential - 1] & reached)
    at[0] &= ~reached
