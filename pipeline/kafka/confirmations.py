"""Confirmations: commits of groups whose records in the offsets topic were deleted unread, as brokers report them.

An offset from a coordinator is the group's commit. "No commit" counts when it was reported twice, a batch apart: a
coordinator that has just moved may not have loaded everything. Silence counts for nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pipeline.kafka.ghosts import Brokers, Members
from pipeline.kafka.positions import PartitionKey

# Each takes a connection of its own to its coordinator, and batches have little time.
_MOST_IN_A_BATCH = 100
_AT_ONCE = 8


CommitKey: TypeAlias = tuple[str, str, int]
"""Group, topic and partition number."""


class BrokerCommit(NamedTuple):
    """A group's commit in one partition, as its coordinator reports it."""

    group_id: str
    topic: str
    partition: int
    offset: int | None
    """None for no commit."""


@dataclass(slots=True, kw_only=True)
class Confirmations:
    """Asks about some of the unconfirmed groups in each batch."""

    brokers: Brokers
    _last: str = ""
    """The last group that was asked about for its commits; the next batch continues after it."""
    _last_seconded: str = ""
    """The last group that was asked about for its members."""
    _absent: set[CommitKey] = field(default_factory=set)
    """Commits that were reported missing once."""

    def commits(
        self, groups: Mapping[str, Collection[PartitionKey]], *, doubtful: AbstractSet[CommitKey]
    ) -> list[BrokerCommit]:
        """Return what is known by now about commits of these groups.

        Args:
            groups: Each with the partitions in which it may have committed.
            doubtful: Stored commits; others matter only if they exist.
        """
        self._absent &= doubtful
        asked = _turn(groups, after=self._last)
        self._last = asked[-1] if asked else ""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda group: self.brokers.commits(group, groups[group]), asked))
        return [
            BrokerCommit(group, topic, number, offset)
            for group, answer in zip(asked, answers, strict=True)
            for (topic, number), offset in (answer or {}).items()
            if offset is not None or self._is_absent((group, topic, number), doubtful)
        ]

    def seconded(self, stored: Mapping[str, Members]) -> tuple[str, ...]:
        """Groups whose members and assignments the brokers report as stored."""
        asked = _turn(stored, after=self._last_seconded)
        self._last_seconded = asked[-1] if asked else ""
        known = self.brokers.members(asked)
        return tuple(sorted(group for group, members in known.items() if members == stored[group]))

    def _is_absent(self, key: CommitKey, doubtful: AbstractSet[CommitKey]) -> bool:
        """Whether the commit is reported missing for the second time."""
        is_second = key in self._absent
        if key in doubtful:
            self._absent ^= {key}
        return is_second


def _turn(groups: Iterable[str], *, after: str) -> list[str]:
    """Some of the groups, those behind `after` first."""
    names = sorted(groups)
    later = [name for name in names if name > after]
    return [*later, *names[: len(names) - len(later)]][:_MOST_IN_A_BATCH]
