"""Ghosts: groups that stand in the tables though the brokers no longer know them.

A deletion is a tombstone in the offsets topic. Whoever was away while it was written and compacted away never sees it.
So once a day, and after each full reading, the brokers are asked. A group is dropped only if they have answered, by
its name and twice, a batch apart, that it is dead or not there, and that it has no commit. No other answer, and no
silence, is a reason.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from pipeline.kafka.asking import Asked, allow, answer, outcome_of
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.tokens import ready

log = logging.getLogger(__name__)

_EVERY_MS = 86_400_000
# Each takes a connection of its own to its coordinator, which takes time that batches do not have.
_MOST_IN_A_BATCH = 25

Members = Mapping[str, frozenset[PartitionKey]]
"""What each member of a group was given."""
Committed = Mapping[str, tuple[PartitionKey, ...]]
"""By group: the partitions of which a commit is stored."""


def _can_be_asked(group: str) -> bool:
    # librdkafka takes names as C strings: another group than this one would be asked about.
    return bool(group) and "\0" not in group


class Brokers:
    """What the brokers say of groups."""

    def __init__(
        self, properties: Mapping[str, str], make_admin: Callable[[], AdminClient], *, timeout_s: float
    ) -> None:
        """Nothing is asked yet.

        Args:
            properties: Of librdkafka, secrets resolved.
            make_admin: A client to ask with.
            timeout_s: Of each question.
        """
        self._properties = dict(properties)
        self._make_admin = make_admin
        self._timeout_s = timeout_s
        self._asked = Asked()

    def listed(self) -> frozenset[str] | None:
        """The groups that the cluster lists; None when some coordinator did not answer."""
        try:
            admin = self._make_admin()
            asked = admin.list_consumer_groups(request_timeout=self._timeout_s)
            found = answer(asked, self._timeout_s)
        except KafkaException:
            return None
        return None if found.errors else frozenset(group.group_id for group in found.valid)

    def are_gone(self, groups: Committed) -> frozenset[str]:
        """Those of the groups that are dead or not there, and have no commit for any of their partitions."""
        return frozenset(
            group
            for group, said in self._described(groups)
            if self._is_dead(said) and self._has_no_commit(group, groups[group])
        )

    def _described(
        self, groups: Collection[str]
    ) -> Iterator[tuple[str, ConsumerGroupDescription | KafkaException]]:
        """Each group with what its coordinator says, or why it says nothing."""
        if not groups:
            return
        try:
            # A client that nobody holds is gone before the answer comes.
            admin = self._make_admin()
        except KafkaException as failure:
            yield from ((group, failure) for group in groups)
            return
        asked = admin.describe_consumer_groups(list(groups), request_timeout=self._timeout_s)
        for group, future in asked.items():
            try:
                yield group, answer(future, self._timeout_s)
            except KafkaException as failure:
                yield group, failure

    def _is_dead(self, said: ConsumerGroupDescription | KafkaException) -> bool:
        if isinstance(said, KafkaException):
            self._say_refused(said)
            return bool(said.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
        return bool(said.state == ConsumerGroupState.DEAD)

    def _has_no_commit(self, group: str, partitions: tuple[PartitionKey, ...]) -> bool:
        found = self.commits(group, partitions)
        return found is not None and found == dict.fromkeys(partitions)

    def commits(
        self, group: str, partitions: Collection[PartitionKey]
    ) -> dict[PartitionKey, int | None] | None:
        """The offset that the group has committed in each partition, None for no commit.

        Partitions of which the coordinator says nothing certain are left out; None when it does not answer.
        """
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
        """The members of each group that its coordinator knows and that no rebalance is under way of."""
        known = (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)
        return {
            group: {
                one.member_id: frozenset(
                    (place.topic, place.partition) for place in one.assignment.topic_partitions
                )
                for one in said.members
            }
            for group, said in self._described(groups)
            if not isinstance(said, KafkaException) and said.state in known
        }

    def _say_refused(self, failure: KafkaException) -> None:
        if outcome_of(failure) == "refused" and self._asked.note("groups", "refused") is None:
            log.warning(
                "groups that were deleted while lagwise was away may stay in the tables: it may not ask for them",
                extra={"error": failure.args[0].str(), "hint": allow("Describe on all groups")},
            )


@dataclass(slots=True, kw_only=True)
class GhostHunt:
    """When the brokers are asked, and about whom."""

    brokers: Brokers
    _due_ms: int = 0
    _waiting: dict[str, tuple[PartitionKey, ...]] = field(default_factory=dict)
    """To be asked for the first time."""
    _suspects: dict[str, tuple[PartitionKey, ...]] = field(default_factory=dict)
    """Said to be gone once."""
    _rounds: int = 0
    _asked_in: dict[str, int] = field(default_factory=dict)
    """By unlisted group: the round that asked about it last (`among`)."""
    strangers: set[str] = field(default_factory=set)
    """Groups that the cluster lists and that are not in the tables; taken by whoever asks about them."""

    def restart(self) -> None:
        """Ask as soon as all has been read."""
        self._due_ms = 0
        self._waiting, self._suspects = {}, {}

    def among(self, unlisted: Committed) -> tuple[str, ...]:
        """Those to be dropped now of groups that no broker lists: their coordinators say twice that they are gone.

        A coordinator's part of the offsets topic may be without a leader: its groups are in no list then, and there.
        Those that were asked about longest ago come first, so that they do not keep others from their turn.

        Args:
            unlisted: Stored groups that the brokers, all of which have answered, do not list.
        """
        suspects = {group: keys for group, keys in self._suspects.items() if group in unlisted}
        gone = self.brokers.are_gone(suspects)
        self._rounds += 1
        self._asked_in |= dict.fromkeys(suspects, self._rounds)
        asked = [group for group in unlisted if group not in gone and _can_be_asked(group)]
        turn = sorted(asked, key=lambda group: self._asked_in.get(group, 0))[:_MOST_IN_A_BATCH]
        self._asked_in |= dict.fromkeys(turn, self._rounds)
        self._asked_in = {group: number for group, number in self._asked_in.items() if group in unlisted}
        self._suspects = {
            group: unlisted[group] for group in self.brokers.are_gone({g: unlisted[g] for g in turn})
        }
        if gone:
            log.info("groups that the brokers no longer know are dropped", extra={"groups": sorted(gone)})
        return tuple(sorted(gone))

    def found(self, stored: Callable[[], Committed], *, now_ms: int) -> tuple[str, ...]:
        """Groups to be dropped now, after another step of the hunt.

        Args:
            stored: The classic groups, and groups without a record, that stand in the tables.
            now_ms: Clock of the batch.
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
                if group not in (listed or ()) and _can_be_asked(group)
            }
            self.strangers = {group for group in listed or () if group not in known and _can_be_asked(group)}
        asked = dict(list(self._waiting.items())[:_MOST_IN_A_BATCH])
        self._waiting = {group: keys for group, keys in self._waiting.items() if group not in asked}
        self._suspects = {group: asked[group] for group in self.brokers.are_gone(asked)}
        if gone:
            log.info("groups that the brokers no longer know are dropped", extra={"groups": sorted(gone)})
        return tuple(sorted(gone))
