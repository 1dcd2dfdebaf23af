"""Which assignor a group runs, and which rebalance protocol follows from it (KIP-726).

Every member lists the assignors it has, the best first. The coordinator takes one that all of them list.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from assignor.errors import NoCommonAssignorError
from assignor.model.java_order import java_order
from assignor.strategies.catalogue import CATALOGUE, RebalanceProtocol

Mode: TypeAlias = Literal["kip", "shipped"]

DEFAULT_ASSIGNORS: dict[Mode, tuple[str, ...]] = {
    "kip": ("cooperative-sticky", "range"),
    "shipped": ("range", "cooperative-sticky"),
}
"""The default list of the proposal, and that of Kafka 3.0 to 4.x, which is reversed."""

_PROTOCOLS = {name: entry.protocols for name, entry in CATALOGUE.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The assignor that was selected, and how clearly."""

    assignor: str
    votes: int
    """Members that prefer it among the assignors that all support."""
    tie: bool
    """Whether another assignor got as many votes."""


def select_assignor(lists: Sequence[Sequence[str]]) -> Selection:
    """The assignor of a group whose members list these, the best first.

    Among the names that every member lists, each member votes for its first; most votes win. A tie goes to
    the name that stands further forward in the lists on the whole, then to the first by name. Kafka breaks
    ties by the order of a Java hash map instead, which is why a tie is reported.

    Raises:
        NoCommonAssignorError: No name is in all lists, or there is no list.

    Source: Kafka's ClassicGroup.selectProtocol; KIP-726.
    """
    common = set(lists[0]).intersection(*lists[1:]) if lists else set()
    if not common:
        raise NoCommonAssignorError(tuple(sorted(set(chain.from_iterable(lists)), key=java_order)))
    votes = Counter(next(name for name in names if name in common) for names in lists)
    rank = {name: sum(names.index(name) for names in lists) for name in common}
    winner = min(common, key=lambda name: (-votes[name], rank[name], java_order(name)))
    tie = any(votes[name] == votes[winner] for name in common - {winner})
    return Selection(assignor=winner, votes=votes[winner], tie=tie)


def rebalance_protocol(selected: str, listed: Collection[str], *, mode: Mode) -> RebalanceProtocol:
    """The rebalance protocol a member follows once `selected` is the assignor of its group.

    "kip" is the proposal: the highest protocol of the selected assignor, so it changes with the selection, and
    one rolling bounce that adds `cooperative-sticky` suffices. "shipped" is what Kafka's consumers do: the
    highest that all assignors in the member's own list have in common, fixed when the consumer starts; with
    `range` in the list that is eager whatever is selected. An assignor that is not known here is eager, the
    default of Kafka's ConsumerPartitionAssignor.

    Args:
        selected: The assignor of the group.
        listed: The member's own list; for mode "shipped".
        mode: The proposal, or what Kafka shipped.

    Source: KIP-726; Kafka's ConsumerCoordinator.
    """
    names = [selected] if mode == "kip" else listed
    supported = [set(_PROTOCOLS.get(name, (RebalanceProtocol.EAGER,))) for name in names]
    return max(set.intersection(*supported))
