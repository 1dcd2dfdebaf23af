"""Source: requests of one task to coordinators for the members and commits of groups.

librdkafka 2.16 ends its process when a broker answers an admin client's request for offsets with NOT_COORDINATOR. So a
client lives as long as its task, which knows no coordinator of an earlier batch, and only a coordinator that has just
described the group is asked for its offsets. Assignments on which the client fails are known from the list of groups.
If the process ends all the same, Spark repeats the task, which then leaves out the groups whose descriptions end it
(`ask_after_crash`).
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import final

from confluent_kafka import OFFSET_INVALID, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, MemberDescription

from pipeline.kafka.asking import UNASKABLE, answer, can_be_asked, in_words
from pipeline.kafka.client import admin_of
from pipeline.kafka.descriptions import UNASKED, UNREADABLE, Description, describe_groups
from pipeline.kafka.sources.groups.listing import state_of, type_of
from pipeline.kafka.sources.groups.settings import (
    NOT_ASKED_IN_TIME,
    GroupShare,
    GroupsSettings,
    ListedGroup,
)

# A shorter one shows nothing about the broker, and librdkafka cannot take every short timeout.
_LEAST_S = 1.0
_NO_SUCH_GROUP = "its coordinator does not know the group, although a broker has just listed it"


@dataclass(frozen=True, slots=True)
class Member:
    """A member as its coordinator describes it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assigned: dict[str, list[int]] | None
    """Partition numbers by topic; None if the coordinator does not report them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset of a group."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """The complete answer about one group, or the reason why there is none."""

    group: ListedGroup
    assignor: str | None = None
    members: tuple[Member, ...] | None = None
    """None if the coordinator describes no groups of this type."""
    commits: tuple[Commit, ...] = ()
    error: str | None = None
    """Why there is no answer."""


def ask(settings: GroupsSettings, share: GroupShare) -> Iterator[GroupAnswer]:
    """An answer for each group of the share, whatever the brokers do."""
    try:
        admin = admin_of(settings.properties)
    except KafkaException as failure:
        yield from unanswered(share, in_words(failure))
        return
    questions = _Questions(admin, ends_at_s=time.monotonic() + settings.request_timeout_s)
    with ThreadPoolExecutor(share.at_once) as pool:
        yield from pool.map(questions.answered, share.groups)


def ask_after_crash(settings: GroupsSettings, share: GroupShare) -> Iterator[GroupAnswer]:
    """As `ask`, without the groups on whose descriptions the client fails, which other processes find out."""
    names = [group.group_id for group in share.groups if group.is_readable]
    described = describe_groups(settings.properties, names, timeout_s=settings.request_timeout_s)
    why = {name: _why_undescribed(said) for name, said in described.items()}
    groups = tuple(group for group in share.groups if why.get(group.group_id) is None)
    yield from ask(settings, replace(share, groups=groups))
    for group in share.groups:
        if (error := why.get(group.group_id)) is not None:
            yield GroupAnswer(group=group, error=error)


def _why_undescribed(said: Description | KafkaException) -> str | None:
    """Why a group is not asked about once more; None if its coordinator has answered."""
    asked_again = {KafkaError.GROUP_ID_NOT_FOUND, KafkaError._INVALID_ARG}
    if isinstance(said, Description) or said.args[0].code() in asked_again:
        return None
    return NOT_ASKED_IN_TIME if said.args[0].str() == UNASKED else in_words(said)


def unanswered(share: GroupShare, error: str) -> Iterator[GroupAnswer]:
    """Answers for a share that cannot be requested: each has the error."""
    return (GroupAnswer(group=group, error=error) for group in share.groups)


@final
class _Questions:
    """Requests about groups that share one client and one deadline."""

    def __init__(self, admin: AdminClient, *, ends_at_s: float) -> None:
        """Ask nothing yet; several threads use the client, until `ends_at_s` of the monotonic clock."""
        self._admin = admin
        self._ends_at_s = ends_at_s

    def answered(self, group: ListedGroup) -> GroupAnswer:
        """The answer of the group's coordinator."""
        error = self._why_unasked(group)
        if error is not None:
            return GroupAnswer(group=group, error=error)
        try:
            return self._said(group)
        except KafkaException as failure:
            return GroupAnswer(group=group, error=f"its coordinator did not answer: {in_words(failure)}")
        except Exception as failure:  # noqa: BLE001 - any error of the client goes into the answer
            why = f"{UNREADABLE}: {type(failure).__name__}: {failure}"
            return GroupAnswer(group=group, error=" ".join(why.split()))

    def _why_unasked(self, group: ListedGroup) -> str | None:
        if not can_be_asked(group.group_id):
            return UNASKABLE
        if not group.is_readable:
            return UNREADABLE
        return NOT_ASKED_IN_TIME if self._left_s() < _LEAST_S else None

    def _said(self, group: ListedGroup) -> GroupAnswer:
        """Members and commits of the group.

        Raises:
            KafkaException: There is no answer, or a refusal.
        """
        described = self._described(group)
        try:
            commits = self._commits(group.group_id)
        except KafkaException as failure:
            named = _name(described)
            return GroupAnswer(
                group=group, error=f"its coordinator{named} did not return its commits: {in_words(failure)}"
            )
        if isinstance(commits, str):
            return GroupAnswer(group=group, error=commits)
        if described is None and not group.is_other and (commits == () or group.group_type == "classic"):
            return GroupAnswer(group=group, error=_NO_SUCH_GROUP)
        if described is None:
            # Share groups commit nothing; Streams groups and those of other protocols are not described.
            return GroupAnswer(group=group, commits=commits or ())
        now = _as_described(group, described)
        return GroupAnswer(
            group=now,
            assignor=described.partition_assignor or None,
            members=tuple(_member(one, now) for one in described.members),
            commits=commits or (),
        )

    def _left_s(self) -> float:
        return self._ends_at_s - time.monotonic()

    def _described(self, group: ListedGroup) -> ConsumerGroupDescription | None:
        """The group; None if its coordinator has no group of this name, or describes none of this type.

        Raises:
            KafkaException: There is no answer, or a refusal.
        """
        left_s = max(_LEAST_S, self._left_s())
        asked = self._admin.describe_consumer_groups([group.group_id], request_timeout=left_s)
        try:
            described: ConsumerGroupDescription = answer(asked[group.group_id], left_s)
        except KafkaException as failure:
            code = failure.args[0].code()
            # "… is not a consumer group", of one of Connect's, for example.
            is_other = group.is_other and code == KafkaError._INVALID_ARG
            if is_other or code == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            raise
        return None if state_of(described) == "Dead" else described

    def _commits(self, group_id: str) -> tuple[Commit, ...] | str | None:
        """All commits of the group; a text if some are unknown; None for a group that cannot commit.

        Raises:
            KafkaException: There is no answer, or a refusal.
        """
        left_s = max(_LEAST_S, self._left_s())
        asked = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id)], request_timeout=left_s
        )
        try:
            answered = answer(asked[group_id], left_s)
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return None
            raise
        found = []
        for one in answered.topic_partitions or ():
            if one.error is not None:
                why = in_words(KafkaException(one.error))
                return f"its coordinator does not return its commit in {one.topic}-{one.partition}: {why}"
            if one.offset == OFFSET_INVALID:
                continue
            if one.offset < 0:
                return f"its coordinator returns offset {one.offset} for its commit in {one.topic}-{one.partition}"
            found.append(Commit(one.topic, one.partition, one.offset, one.leader_epoch))
        return tuple(found)


def _as_described(group: ListedGroup, described: ConsumerGroupDescription) -> ListedGroup:
    """The group with what is newer in its description, or only there."""
    kind = type_of(described)
    return ListedGroup(
        group.group_id,
        group.group_type if kind == "unknown" else kind,
        state_of(described) or group.state,
    )


def _name(described: ConsumerGroupDescription | None) -> str:
    """Number and address of the coordinator behind its mention, if it has described the group."""
    node = None if described is None else described.coordinator
    return "" if node is None else f", broker {node.id} ({node.host}:{node.port}),"


def _member(member: MemberDescription, group: ListedGroup) -> Member:
    given: dict[str, list[int]] = {}
    for one in member.assignment.topic_partitions:
        given.setdefault(one.topic, []).append(one.partition)
    # Up to Kafka 3.9 a coordinator omits assignments while a classic group rebalances
    # (GroupMetadata.summary, summaryNoMetadata): empty is unknown then.
    is_told = bool(given) or group.group_type == "consumer" or group.state == "Stable"
    # kfake describes KIP-848 groups by topic ids alone: a topic without a name is no answer either.
    is_told &= "" not in given
    return Member(
        member.member_id,
        member.group_instance_id or None,
        member.client_id,
        member.host,
        {topic: sorted(numbers) for topic, numbers in given.items()} if is_told else None,
    )
