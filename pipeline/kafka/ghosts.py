"""Ghosts: groups in the tables that the brokers no longer know.

A deletion is a tombstone in the offsets topic. A driver that was away while it was written and compacted away never
sees it. So lagwise asks the brokers once a day, and after each full reading. It drops a group only if they answer by
name, twice, a batch apart, that it is dead or unknown and has no commit. No other answer drops it, nor does silence.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from pipeline.kafka.asking import Asked, allow, answer, can_be_asked, outcome_of
from pipeline.kafka.descriptions import Answer
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.tokens import ready

log = logging.getLogger(__name__)

_EVERY_MS = 86_400_000
# Each group takes a connection of its own to its coordinator, and batches have little time.
_MOST_IN_A_BATCH = 25

Members = Mapping[str, frozenset[PartitionKey]]
"""Partitions assigned to each member of a group."""
Committed = Mapping[str, tuple[PartitionKey, ...]]
"""Partitions with a stored commit, by group."""


class Brokers:
    """Asks the brokers about groups."""

    def __init__(
        self,
        properties: Mapping[str, str],
        make_admin: Callable[[], AdminClient],
        describe: Callable[[Collection[str]], Mapping[str, Answer]],
        *,
        timeout_s: float,
    ) -> None:
        """Ask nothing yet.

        Args:
            properties: With their secrets resolved.
            make_admin: Makes a client with these properties.
            describe: `describe_groups`; on some descriptions the client ends its process.
            timeout_s: Time to wait for an answer.
        """
        self._properties = dict(properties)
        self._make_admin = make_admin
        self._describe = describe
        self._timeout_s = timeout_s
        self._asked = Asked()

    def listed(self) -> frozenset[str] | None:
        """The groups that the cluster lists; None if a coordinator did not answer."""
        try:
            admin = self._make_admin()
            asked = admin.list_consumer_groups(request_timeout=self._timeout_s)
            found = answer(asked, self._timeout_s)
        except KafkaException:
            return None
        return None if found.errors else frozenset(group.group_id for group in found.valid)

    def are_gone(self, groups: Committed) -> frozenset[str]:
        """Groups that are dead or unknown, and have no commit for any of their partitions."""
        return frozenset(
            group
            for group, said in self._describe(groups).items()
            if self._is_dead(said) and self._has_no_commit(group, groups[group])
        )

    def _is_dead(self, said: Answer) -> bool:
        if isinstance(said, KafkaException):
            self._say_refused(said)
            return bool(said.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
        return said.state == "DEAD"

    def _has_no_commit(self, group: str, partitions: tuple[PartitionKey, ...]) -> bool:
        found = self.commits(group, partitions)
        return found is not None and found == dict.fromkeys(partitions)

    def commits(
        self, group: str, partitions: Collection[PartitionKey]
    ) -> dict[PartitionKey, int | None] | None:
        """The group's committed offset in each partition; None for no commit.

        Leaves out partitions without a certain answer; None if the coordinator does not answer or cannot be asked.
        """
        if not can_be_asked(group):
            return None
        wanted = [TopicPartition(*key) for key in partitions]
        if not wanted:
            return {}
        # An admin client that asks for a group's offsets crashes librdkafka 2.16 when a coordinator has moved.
        try:
            consumer = Consumer(
                {**ready(self._properties), "group.id": group, "enable.auto.commit": "false"}, logger=log
            )
        except KafkaException:
            return None
        try:
            found = consumer.committed(wanted, timeout=self._timeout_s)
        except KafkaException as failure:
            self._say_refused(failure)
            return None
        finally:
            consumer.close()
        return {
            (one.topic, one.partition): None if one.offset == OFFSET_INVALID else one.offset
            for one in found
            if one.error is None and (one.offset >= 0 or one.offset == OFFSET_INVALID)
        }

    def members(self, groups: Collection[str]) -> dict[str, Members]:
        """The members of each group that its coordinator knows and that is not rebalancing."""
        return {
            group: {one.member_id: one.assigned for one in said.members}
            for group, said in self._describe(groups).items()
            if not isinstance(said, KafkaException) and said.state in {"STABLE", "EMPTY"}
        }

    def _say_refused(self, failure: KafkaException) -> None:
        if outcome_of(failure) == "refused" and self._asked.note("groups", "refused") is None:
            log.warning(
                "groups that were deleted while lagwise was not running may stay in the tables: this user may not "
                "describe them",
                extra={"error": failure.args[0].str(), "hint": allow("Describe on all groups")},
            )


@dataclass(slots=True, kw_only=True)
class GhostHunt:
    """Decides when to ask the brokers, and about which groups."""

    brokers: Brokers
    _due_ms: int = 0
    _waiting: dict[str, tuple[PartitionKey, ...]] = field(default_factory=dict)
    """Groups to ask about for the first time."""
    _suspects: dict[str, tuple[PartitionKey, ...]] = field(default_factory=dict)
    """Groups that the brokers have once reported as gone."""
    _rounds: int = 0
    _asked_in: dict[str, int] = field(default_factory=dict)
    """The last round that asked about each unlisted group (`among`)."""
    strangers: set[str] = field(default_factory=set)
    """Groups that the cluster lists and the tables lack. The step that asks about them removes them."""

    def restart(self) -> None:
        """Ask as soon as everything has been read."""
        self._due_ms = 0
        self._waiting, self._suspects = {}, {}

    def among(self, unlisted: Committed) -> tuple[str, ...]:
        """Stored groups to drop now: the brokers, which have all answered, do not list them.

        Their coordinators have reported twice that they are gone. Groups of a partition of the offsets topic without a
        leader exist although they are in no list. Groups that were asked about longest ago come first, so that every
        group gets its turn.
        """
        suspects = {group: keys for group, keys in self._suspects.items() if group in unlisted}
        gone = self.brokers.are_gone(suspects)
        self._rounds += 1
        self._asked_in |= dict.fromkeys(suspects, self._rounds)
        asked = [group for group in unlisted if group not in gone and can_be_asked(group)]
        turn = sorted(asked, key=lambda group: self._asked_in.get(group, 0))[:_MOST_IN_A_BATCH]
        self._asked_in |= dict.fromkeys(turn, self._rounds)
        self._asked_in = {group: number for group, number in self._asked_in.items() if group in unlisted}
        self._suspects = {
            group: unlisted[group] for group in self.brokers.are_gone({g: unlisted[g] for g in turn})
        }
        if gone:
            log.info(
                "groups that no longer exist on the brokers were dropped", extra={"groups": sorted(gone)}
            )
        return tuple(sorted(gone))

    def found(self, stored: Callable[[], Committed], *, now_ms: int) -> tuple[str, ...]:
        """Groups to drop now, after another step of the hunt.

        `stored` returns the classic groups, and the groups without a record, of the tables.
        """
        gone = self.brokers.are_gone(self._suspects)
        self._suspects = {}
        if now_ms >= self._due_ms:
            self._due_ms = now_ms + _EVERY_MS
            listed = self.brokers.listed()
            known = {} if listed is None else stored()
            self._waiting = {
                group: keys
                for group, keys in known.items()
                if group not in (listed or ()) and can_be_asked(group)
            }
            self.strangers = {group for group in listed or () if group not in known and can_be_asked(group)}
        asked = dict(list(self._waiting.items())[:_MOST_IN_A_BATCH])
        self._waiting = {group: keys for group, keys in self._waiting.items() if group not in asked}
        self._suspects = {group: asked[group] for group in self.brokers.are_gone(asked)}
        if gone:
            log.info(
                "groups that no longer exist on the brokers were dropped", extra={"groups": sorted(gone)}
            )
        return tuple(sorted(gone))
