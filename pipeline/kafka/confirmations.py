"""Confirmations: what the brokers say of groups whose records in the offsets topic were deleted unread.

An offset that a coordinator names is the group's commit. That there is none counts when it was said twice, a batch
apart: a coordinator that has just moved may not have read all yet. No answer says nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pipeline.kafka.ghosts import Brokers, Members
from pipeline.kafka.positions import PartitionKey

# Each takes a connection of its own to its coordinator, which takes time that batches do not have.
_MOST_IN_A_BATCH = 100
_AT_ONCE = 8


CommitKey: TypeAlias = tuple[str, str, int]
"""Group, topic and partition number."""


class BrokerCommit(NamedTuple):
    """What a coordinator says of a group's commit in one partition."""

    group_id: str
    topic: str
    partition: int
    offset: int | None
    """None: there is no commit."""


@dataclass(slots=True, kw_only=True)
class Confirmations:
    """Asks about a part of the unconfirmed groups with each batch."""

    brokers: Brokers
    _last: str = ""
    """The group that was asked about last: the next batch goes on after it."""
    _absent: set[CommitKey] = field(default_factory=set)
    """Commits of which it was said once that there is none."""

    def commits(
        self, groups: Mapping[str, Collection[PartitionKey]], *, doubtful: AbstractSet[CommitKey]
    ) -> list[BrokerCommit]:
        """What is known by now of commits of these groups.

        Args:
            groups: Each with the partitions in which it may have committed.
            doubtful: Commits that are stored: of others only that they are there is of interest.
        """
        self._absent &= doubtful
        asked = self._turn(groups)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda group: self.brokers.commits(group, groups[group]), asked))
        return [
            BrokerCommit(group, topic, number, offset)
            for group, answer in zip(asked, answers, strict=True)
            for (topic, number), offset in (answer or {}).items()
            if offset is not None or self._is_absent((group, topic, number), doubtful)
        ]

    def seconded(self, stored: Mapping[str, Members]) -> tuple[str, ...]:
        """Those of the groups whose members and assignments are, by the brokers, what is stored."""
        known = self.brokers.members(sorted(stored)[:_MOST_IN_A_BATCH])
        return tuple(sorted(group for group, members in known.items() if members == stored[group]))

    def _turn(self, groups: Iterable[str]) -> list[str]:
        names = sorted(groups)
        later = [name for name in names if name > self._last]
        turn = [*later, *names[: len(names) - len(later)]][:_MOST_IN_A_BATCH]
        self._last = turn[-1] if turn else ""
        return turn

    def _is_absent(self, key: CommitKey, doubtful: AbstractSet[CommitKey]) -> bool:
        """Whether it is said for the second time that there is no such commit."""
        is_second = key in self._absent
        if key in doubtful:
            self._absent ^= {key}
        return is_second
