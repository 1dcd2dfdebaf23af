"""Partitions handed on from member to member along the shortest chains, on bitsets.

A *row* is the topics of one subscriber set: any of its partitions can stand in for any other. A chain starts at
a member with too many partitions: it gives one of some row to another reader of that row, which gives one of
some other row away in turn, until a member is reached that has too few. Chains of one length are found
together, level by level (Dinic 1970).

Members and rows are bits of Python integers: all members a row can go to join a level by one `|`, and a dead
end is struck out for every chain by one `&`. So the eligible pairs, which are the many, are never gone
through one by one.

Taking a partition from its owner costs 1, giving it back -1, all else nothing. Prices of members and rows say
which steps lie on a cheapest chain (primal-dual, Ford and Fulkerson 1957): a step from u to v is *open* when
its cost is price(u) - price(v), and no step costs less than that. Prices start at 0; when the open steps lead to
nobody that has too few, all that they reach rises by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Bools, Int32s


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def bitsets(table: Bools) -> list[int]:
    """One integer for each line of a table, bit i for column i."""
    packed = np.packbits(table, axis=1, bitorder="little")
    width, data = packed.shape[1], packed.tobytes()
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(len(packed))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where chains from the members that still have too many can go: nobody there has too few."""

    members: int
    rows: int


class Exchange:
    """Who holds how many partitions of which row, and what one more step along a chain would be.

    Args:
        units: Rows x members: partitions held. Changed in place.
        owned: Rows x members: partitions the member owns from before.
        takers: For each row the members that may take from it.
        first_single: Rows from this one on give a member at most one unit, and own none.
    """

    __slots__ = (
        "_extra",
        "_first_single",
        "_kept",
        "_lost",
        "_member_price",
        "_members_at",
        "_owned",
        "_row_price",
        "_rows_at",
        "_takers",
        "_units",
    )

    def __init__(self, units: Int32s, owned: Int32s, *, takers: list[int], first_single: int) -> None:
        n_rows, n_members = units.shape
        # A memoryview reads and writes single cells of an array at half the price of the array itself.
        self._units, self._owned = units.data, owned.data
        self._takers = takers
        self._first_single = first_single
        self._lost = bitsets(units < owned)
        self._kept = bitsets(((units > 0) & (units <= owned)).T)
        self._extra = bitsets((units > owned).T)
        self._row_price = [0] * n_rows
        self._member_price = [0] * n_members
        # The last entry stays 0: it is read at index -1 and one past the greatest price.
        self._rows_at: list[int] = [(1 << n_rows) - 1, 0]
        self._members_at: list[int] = [(1 << n_members) - 1, 0]

    def settle(self, excess: list[int], *, inside: int) -> Reached | None:
        """Hand partitions on along open steps as long as any chain leads from too many to too few.

        Args:
            excess: Partitions each member has beyond what it should, below 0 if it lacks some. Changed in place.
            inside: Members that take part.

        Returns:
            None when nobody inside has too many or nobody has too few; otherwise all that was reached, in vain.
        """
        givers = sum(1 << m for m in bits(inside) if excess[m] > 0)
        needy = sum(1 << m for m in bits(inside) if excess[m] < 0)
        while givers and needy:
            members, rows = self._levels(givers, needy, inside)
            if not members[-1] & needy:
                return Reached(members=_union(members), rows=_union(rows))
            members[-1] &= needy
            for giver in bits(givers):
                self._drain(giver, excess, members, rows)
            givers = sum(1 << m for m in bits(givers) if excess[m] > 0)
            needy = sum(1 << m for m in bits(needy) if excess[m] < 0)
        return None

    def raise_prices(self, reached: Reached) -> None:
        """Raise what was reached in vain by one, which opens the next cheapest steps out of it."""
        for m in bits(reached.members):
            self._member_price[m] += 1
        for h in bits(reached.rows):
            self._row_price[h] += 1
        _raise(self._members_at, reached.members)
        _raise(self._rows_at, reached.rows)

    def _gives(self, m: int) -> int:
        """Rows of which a member may give one away by an open step."""
        price = self._member_price[m]
        at = self._rows_at
        return (self._extra[m] & at[price]) | (self._kept[m] & at[price - 1])

    def _takes(self, h: int) -> int:
        """Members that may take one of a row by an open step."""
        price, lost = self._row_price[h], self._lost[h]
        at = self._members_at
        return (self._takers[h] & ~lost & at[price]) | (lost & at[price + 1])

    def _levels(self, givers: int, needy: int, inside: int) -> tuple[list[int], list[int]]:
        """Members and rows by their distance from the givers, up to the first level with a needy one."""
        members, rows = [givers], []
        new_members, new_rows = inside & ~givers, -1
        while members[-1] and not members[-1] & needy:
            level = 0
            for m in bits(members[-1]):
                level |= self._gives(m)
            level &= new_rows
            new_rows &= ~level
            rows.append(level)
            level = 0
            for h in bits(rows[-1]):
                level |= self._takes(h)
            level &= new_members
            new_members &= ~level
            members.append(level)
        return members, rows

    def _drain(self, giver: int, excess: list[int], members: list[int], rows: list[int]) -> None:
        """Hand on from one giver until it has what it should or no chain is left."""
        while excess[giver] > 0:
            chain = self._chain(giver, members, rows)
            if not chain:
                return
            taker = chain[-1]
            amount = min(excess[giver], -excess[taker], self._capacity(chain))
            for at in range(0, len(chain) - 2, 2):
                self._hand_over(chain[at + 1], chain[at], chain[at + 2], amount)
            excess[giver] -= amount
            excess[taker] += amount
            if excess[taker] == 0:
                members[-1] &= ~(1 << taker)

    def _chain(self, giver: int, members: list[int], rows: list[int]) -> list[int]:
        """Member, row, member, row, ..., member through all levels; empty when there is none.

        What leads nowhere is struck out of its level.
        """
        chain = [giver]
        depth = 0
        while depth < len(rows):
            here = self._gives(chain[-1]) & rows[depth]
            if here:
                low = here & -here
                row = low.bit_length() - 1
                there = self._takes(row) & members[depth + 1]
                if there:
                    chain += (row, (there & -there).bit_length() - 1)
                    depth += 1
                else:
                    rows[depth] &= ~low
            elif depth == 0:
                return []
            else:
                members[depth] &= ~(1 << chain[-1])
                del chain[-2:]
                depth -= 1
        return chain

    def _capacity(self, chain: list[int]) -> int:
        """Units that can go along a chain before one of its steps changes its cost."""
        units, owned = self._units, self._owned
        amount = 1 << 62
        for at in range(0, len(chain) - 2, 2):
            giver, row, taker = chain[at : at + 3]
            held, own = units[row, giver], owned[row, giver]
            amount = min(amount, held - own if held > own else held)
            lost = owned[row, taker] - units[row, taker]
            if lost > 0:
                amount = min(amount, lost)
        return amount

    def _hand_over(self, row: int, giver: int, taker: int, amount: int) -> None:
        self._units[row, giver] -= amount
        self._units[row, taker] += amount
        if row >= self._first_single:
            self._takers[row] = (self._takers[row] | 1 << giver) & ~(1 << taker)
        self._mark(row, giver)
        self._mark(row, taker)

    def _mark(self, row: int, m: int) -> None:
        """Bring the bits of one row and member in line with what the member holds."""
        held, own = self._units[row, m], self._owned[row, m]
        of_row, of_member = 1 << row, 1 << m
        self._extra[m] = self._extra[m] | of_row if held > own else self._extra[m] & ~of_row
        self._kept[m] = self._kept[m] | of_row if 0 < held <= own else self._kept[m] & ~of_row
        self._lost[row] = self._lost[row] | of_member if held < own else self._lost[row] & ~of_member


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _raise(at: list[int], reached: int) -> None:
    """Move what was reached from the masks of its prices to those of the prices one higher."""
    at.append(0)
    for price in range(len(at) - 2, 0, -1):
        at[price] = (at[price] & ~reached) | (at[price - 1] & reached)
    at[0] &= ~reached
