"""Group metadata as a coordinator writes it, for groups that nobody runs: into the offsets topic by `inject`."""

from assignor.protocol.kafka.consumer import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from assignor.protocol.kafka.group_metadata import GroupMember, GroupMetadata, encode_group_metadata
from assignor.protocol.kafka.offsets import encode_group_metadata_key
from tests.support.brokers.inject import RawRecord, commit_record, offsets_partition


def member(
    member_id: str,
    *topics: str,
    assigned: TopicPartitions | None = None,
    owned: TopicPartitions | None = None,
    subscription: bytes | None = None,
) -> GroupMember:
    """A member that was given `assigned` and says that it owns `owned`; `subscription` replaces its bytes."""
    return GroupMember(
        member_id=member_id,
        client_id=f"client-{member_id}",
        client_host="/10.0.0.1",
        # As long as Kafka allows: a coordinator that reads these records again waits for the members' heartbeats.
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=300_000,
        subscription=subscription or encode_subscription(Subscription(topics=topics, owned=owned or {})),
        assignment=encode_assignment(Assignment(partitions=assigned or {})),
    )


def group_record(
    group_id: str,
    *members: GroupMember,
    generation: int = 1,
    assignor: str = "range",
    protocol_type: str = "consumer",
) -> RawRecord:
    """A stable classic group, or an empty one, in its own partition of the offsets topic."""
    group = GroupMetadata(
        protocol_type=protocol_type,
        generation=generation,
        protocol=assignor,
        leader=members[0].member_id if members else None,
        state_timestamp_ms=1_700_000_000_000,
        members=members,
    )
    return RawRecord(
        offsets_partition(group_id), encode_group_metadata_key(group_id), encode_group_metadata(group)
    )


def lopsided_group(group_id: str, topic: str) -> list[RawRecord]:
    """A group with everything on one of its two members, and one commit: there is something to plan."""
    busy = member("busy", topic, assigned={topic: (0, 1, 2)})
    return [group_record(group_id, busy, member("idle", topic)), commit_record(group_id, topic, 0, 2)]
