"""Records of KIP-848 groups, as a coordinator writes them: raw, and decoded as a batch has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from assignor.protocol.kafka.consumer_group import (
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordKey,
    RegularExpression,
    TopicPartitions,
    encode_assignment_epoch,
    encode_current_assignment,
    encode_group_epoch,
    encode_member_metadata,
    encode_record_key,
    encode_regular_expression,
    encode_target_assignment,
)
from assignor.protocol.kafka.offsets import topic_id_text
from assignor.protocol.kafka.record_types import RecordType
from pipeline.arrow_columns import TIMESTAMP
from pipeline.decode.groups import group_rows
from tests.support.job.frames import NOW_MS

Written = tuple[bytes, bytes | None]
"""Key and value."""
Held = Mapping[str, Sequence[int]]
"""Partitions by topic."""

PARTITION = 3


def topic_id(topic: str) -> bytes:
    """An id for the topic: its name, filled up."""
    return topic.encode().ljust(16, b"\x01")


def topic_names(*topics: str) -> dict[str, str]:
    """What the brokers say of the topics: names by id."""
    return {topic_id_text(topic_id(topic)): topic for topic in topics}


def key(record_type: RecordType, name: str = "", *, group: str = "g") -> bytes:
    """Key of a record of this type."""
    return encode_record_key(RecordKey(record_type=record_type, group_id=group, name=name))


def epoch(number: int, *, group: str = "g") -> Written:
    """The group's own record."""
    return key(RecordType.CONSUMER_GROUP_METADATA, group=group), encode_group_epoch(number)


def target_epoch(number: int) -> Written:
    """The epoch of the target assignment."""
    return key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA), encode_assignment_epoch(number)


def metadata(member_id: str, *topics: str, group: str = "g", **fields: Any) -> Written:
    """Who a member is and what it subscribes to."""
    given = {"client_id": f"client-{member_id}", "client_host": "/10.0.0.1", "rebalance_timeout_ms": 60_000}
    value = MemberMetadata(topic_names=topics, **(given | fields))
    return key(RecordType.CONSUMER_GROUP_MEMBER_METADATA, member_id, group=group), encode_member_metadata(
        value
    )


def target(member_id: str, held: Held, *, group: str = "g") -> Written:
    """What a member shall have."""
    record_type = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    return key(record_type, member_id, group=group), encode_target_assignment(_by_id(held))


def current(
    member_id: str,
    number: int,
    held: Held | None = None,
    *,
    pending: Held | None = None,
    state: int = MemberState.STABLE,
    group: str = "g",
) -> Written:
    """What a member has, and what it has to give up."""
    value = CurrentAssignment(
        member_epoch=number,
        previous_member_epoch=number - 1,
        state=state,
        assigned=_by_id(held or {}),
        pending_revocation=_by_id(pending or {}),
    )
    record_type = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
    return key(record_type, member_id, group=group), encode_current_assignment(value)


def regex(expression: str, *topics: str) -> Written:
    """What a regular expression matches."""
    value = RegularExpression(topics=topics, version=1, timestamp_ms=NOW_MS)
    record_type = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION
    return key(record_type, expression), encode_regular_expression(value)


def gone(record: Written) -> Written:
    """A tombstone of the record."""
    return record[0], None


def raw(*records: Written, first: int = 0, at_ms: int = NOW_MS) -> pa.RecordBatch:
    """Records as they are read, one after another, a second apart."""
    n = len(records)
    keys, values = zip(*records, strict=True) if records else ((), ())
    times = [(at_ms + 1000 * number) * 1000 for number in range(n)]
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["__consumer_offsets"] * n, pa.string()),
            "partition": pa.array([PARTITION] * n, pa.int32()),
            "offset": pa.array(range(first, first + n), pa.int64()),
            "timestamp": pa.array(times, pa.int64()).cast(TIMESTAMP),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def events(*records: Written, first: int = 0, at_ms: int = NOW_MS) -> list[dict[str, Any]]:
    """Decoded rows of the records, the newest of each key."""
    return group_rows(raw(*records, first=first, at_ms=at_ms), lambda _group: True).good


def _by_id(held: Held) -> TopicPartitions:
    return tuple((topic_id(topic), tuple(numbers)) for topic, numbers in held.items())
