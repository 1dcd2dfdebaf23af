"""Records of KIP-848 groups (types 5 to 8 and 16) against the serde of Kafka's group coordinator.

What one writes the other reads, with equal bytes. Of damaged bytes ours reads only what Kafka reads, and reads the same.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer_group import (
    NAMED_TYPES,
    ClassicMember,
    CurrentAssignment,
    MemberMetadata,
    RecordKey,
    RegularExpression,
    TopicPartitions,
    decode_assignment_epoch,
    decode_current_assignment,
    decode_member_metadata,
    decode_record_key,
    decode_regular_expression,
    decode_target_assignment,
    encode_assignment_epoch,
    encode_current_assignment,
    encode_member_metadata,
    encode_record_key,
    encode_regular_expression,
    encode_target_assignment,
)
from assignor.protocol.kafka.record_types import RecordType
from tests.oracle.groups import SOME
from tests.oracle.kafka_assignors import KafkaAssignors
from tests.support.bytes_strategies import damaged, texts
from tests.support.groups.consumer_group_values import (
    assignments,
    current_assignments,
    int32s,
    member_metadata,
    regular_expressions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """Our codec of a record's value, random values, and their form for Kafka's generated converters."""

    record_type: RecordType
    values: st.SearchStrategy[Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    as_json: Callable[[Any], dict[str, Any]]


def _member_json(member: MemberMetadata) -> dict[str, Any]:
    value = {
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": list(member.topic_names),
        "subscribedTopicRegex": member.topic_regex,
        "rebalanceTimeoutMs": member.rebalance_timeout_ms,
        "serverAssignor": member.server_assignor,
    }
    return (
        value if member.classic is None else value | {"classicMemberMetadata": _classic_json(member.classic)}
    )


def _classic_json(classic: ClassicMember) -> dict[str, Any]:
    return {
        "sessionTimeoutMs": classic.session_timeout_ms,
        "supportedProtocols": [
            {"name": name, "metadata": base64.b64encode(metadata).decode()}
            for name, metadata in classic.protocols
        ],
    }


def _current_json(current: CurrentAssignment) -> dict[str, Any]:
    return {
        "memberEpoch": current.member_epoch,
        "previousMemberEpoch": current.previous_member_epoch,
        "state": current.state,
        "assignedPartitions": _topics_json(current.assigned),
        "partitionsPendingRevocation": _topics_json(current.pending_revocation),
    }


def _regex_json(resolved: RegularExpression) -> dict[str, Any]:
    return {
        "topics": list(resolved.topics),
        "version": resolved.version,
        "timestamp": resolved.timestamp_ms,
    }


def _topics_json(topics: TopicPartitions) -> list[dict[str, Any]]:
    return [
        {
            "topicId": base64.urlsafe_b64encode(topic_id).decode().rstrip("="),
            "partitions": list(partitions),
        }
        for topic_id, partitions in topics
    ]


CODECS = [
    Codec(
        record_type=RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        values=member_metadata,
        encode=encode_member_metadata,
        decode=decode_member_metadata,
        as_json=_member_json,
    ),
    Codec(
        record_type=RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        values=int32s,
        encode=encode_assignment_epoch,
        decode=decode_assignment_epoch,
        as_json=lambda epoch: {"assignmentEpoch": epoch},
    ),
    Codec(
        record_type=RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        values=assignments,
        encode=encode_target_assignment,
        decode=decode_target_assignment,
        as_json=lambda target: {"topicPartitions": _topics_json(target)},
    ),
    Codec(
        record_type=RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        values=current_assignments,
        encode=encode_current_assignment,
        decode=decode_current_assignment,
        as_json=_current_json,
    ),
    Codec(
        record_type=RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
        values=regular_expressions,
        encode=encode_regular_expression,
        decode=decode_regular_expression,
        as_json=_regex_json,
    ),
]
EACH_TYPE = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.record_type.name.lower())


@EACH_TYPE
@SOME
@given(data=st.data(), group_id=texts(), name=texts())
def test_record(kafka: KafkaAssignors, codec: Codec, data: st.DataObject, group_id: str, name: str) -> None:
    value = data.draw(codec.values)
    key = RecordKey(
        record_type=codec.record_type,
        group_id=group_id,
        name=name if codec.record_type in NAMED_TYPES else "",
    )
    ours = encode_record_key(key), codec.encode(value)

    kafkas = _encoded(kafka, key, codec.as_json(value))

    assert ours == kafkas
    assert (decode_record_key(kafkas[0]), codec.decode(kafkas[1])) == (key, value)
    assert _decoded(kafka, *ours) == {
        "type": codec.record_type,
        "version": 0,
        "key": _key_json(key),
        "value": codec.as_json(value),
    }


@EACH_TYPE
@SOME
@given(data=st.data())
def test_damaged_value_is_read_as_kafka_reads_it_or_refused(
    kafka: KafkaAssignors, codec: Codec, data: st.DataObject
) -> None:
    value = data.draw(damaged(codec.values.map(codec.encode)) | st.binary(max_size=40).map(_of_version_0))

    try:
        ours = codec.decode(value)
    except DecodeError:
        return
    key = encode_record_key(RecordKey(record_type=codec.record_type, group_id="g", name="n"))
    assert codec.as_json(ours) == _decoded(kafka, key, value)["value"]


@EACH_TYPE
@SOME
@given(data=st.data())
def test_damaged_key_is_read_as_kafka_reads_it_or_refused(
    kafka: KafkaAssignors, codec: Codec, data: st.DataObject
) -> None:
    names = texts() if codec.record_type in NAMED_TYPES else st.just("")
    keys = st.builds(RecordKey, record_type=st.just(codec.record_type), group_id=texts(), name=names)
    written = data.draw(damaged(keys.map(encode_record_key)))
    value = codec.encode(data.draw(codec.values))

    try:
        ours = decode_record_key(written)
    except DecodeError:
        return
    # Damage may turn the key into one of another type, which does not fit this value.
    if ours.record_type is codec.record_type:
        assert _key_json(ours) == _decoded(kafka, written, value)["key"]


@pytest.mark.parametrize(
    ("record_type", "field"),
    [
        (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, "topicPartitions"),
        (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "assignedPartitions"),
        (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "partitionsPendingRevocation"),
    ],
)
@SOME
@given(data=st.data(), numbers=st.lists(int32s, min_size=1, max_size=4).filter(lambda some: min(some) < 0))
def test_negative_partition_is_refused_although_kafka_writes_it(
    kafka: KafkaAssignors, record_type: RecordType, field: str, data: st.DataObject, numbers: list[int]
) -> None:
    (codec,) = (one for one in CODECS if one.record_type is record_type)
    value = codec.as_json(data.draw(codec.values))
    value[field].append({"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": numbers})
    _, written = _encoded(kafka, RecordKey(record_type=record_type, group_id="g", name="m"), value)

    with pytest.raises(DecodeError, match=f"negative partition {min(numbers)}"):
        codec.decode(written)


def _of_version_0(rest: bytes) -> bytes:
    return b"\x00\x00" + rest


def _key_json(key: RecordKey) -> dict[str, Any]:
    """A key in the form of Kafka's generated converters."""
    if key.record_type not in NAMED_TYPES:
        return {"groupId": key.group_id}
    is_regex = key.record_type is RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION
    return {"groupId": key.group_id, "regularExpression" if is_regex else "memberId": key.name}


def _encoded(kafka: KafkaAssignors, key: RecordKey, value: Mapping[str, Any]) -> tuple[bytes, bytes]:
    question = {"do": "encode", "what": "record", "type": key.record_type, "version": 0}
    answer = kafka.ask(question | {"key": _key_json(key), "value": value})
    return bytes.fromhex(answer["key"]), bytes.fromhex(answer["value"])


def _decoded(kafka: KafkaAssignors, key: bytes, value: bytes) -> Any:
    return kafka.ask({"do": "decode", "what": "record", "key": key.hex(), "value": value.hex()})
