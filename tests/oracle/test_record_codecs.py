"""Records of the offsets topic against the serde of Kafka's group coordinator, each way.

What one writes the other reads, and the bytes are equal. Kafka's generated converters make JSON of its messages.
"""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.protocol.kafka.consumer_group import decode_group_epoch, encode_group_epoch
from assignor.protocol.kafka.group_metadata import (
    GroupMember,
    GroupMetadata,
    decode_group_metadata,
    encode_group_metadata,
)
from assignor.protocol.kafka.offsets import (
    MAX_TIMESTAMP_MS,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_offset_commit_key,
    decode_offset_commit_value,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
    group_id_of,
)
from tests.oracle.groups import SOME
from tests.oracle.kafka_assignors import KafkaAssignors
from tests.support.bytes_strategies import texts

int32s = st.integers(-(2**31), 2**31 - 1)
long_texts = texts(40) | st.sampled_from(["x" * 200, "é" * 100])
commits = st.builds(
    OffsetCommitValue,
    committed_offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.none() | st.integers(0, 2**31 - 1),
    metadata=long_texts,
    commit_timestamp_ms=st.integers(0, MAX_TIMESTAMP_MS),
    expire_timestamp_ms=st.none() | st.integers(0, MAX_TIMESTAMP_MS),
    topic_id=st.none() | st.binary(min_size=16, max_size=16).filter(any),
)
commit_keys = st.builds(OffsetCommitKey, group_id=texts(), topic=texts(), partition=st.integers(0, 2**31 - 1))
members = st.builds(
    GroupMember,
    member_id=texts(),
    group_instance_id=st.none() | texts(),
    client_id=long_texts,
    client_host=texts(),
    rebalance_timeout_ms=int32s,
    session_timeout_ms=int32s,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
groups = st.builds(
    GroupMetadata,
    protocol_type=texts(),
    generation=int32s,
    protocol=st.none() | texts(),
    leader=st.none() | texts(),
    state_timestamp_ms=st.integers(-1, MAX_TIMESTAMP_MS),
    members=st.lists(members, max_size=3).map(tuple),
)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@SOME
@given(key=commit_keys, commit=commits)
def test_offset_commit(
    kafka: KafkaAssignors, version: int, key: OffsetCommitKey, commit: OffsetCommitValue
) -> None:
    held = _held_by(commit, version)
    ours = encode_offset_commit_key(key), encode_offset_commit_value(held, version=version)

    kafkas = _encoded_record(kafka, 1, version, _commit_key(key), _commit_value(held, version))
    assert ours == kafkas
    assert (decode_offset_commit_key(kafkas[0]), decode_offset_commit_value(kafkas[1])) == (key, held)
    assert _decoded_record(kafka, *ours) == {
        "type": 1,
        "version": version,
        "key": _commit_key(key),
        "value": _commit_value(held, version),
    }


@SOME
@given(key=commit_keys)
def test_key_of_a_commit_in_its_oldest_type(kafka: KafkaAssignors, key: OffsetCommitKey) -> None:
    value = _commit_value(OffsetCommitValue(committed_offset=1, commit_timestamp_ms=2), 0)

    kafkas, _ = _encoded_record(kafka, 0, 0, _commit_key(key), value)

    assert decode_offset_commit_key(kafkas) == key


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@SOME
@given(group_id=texts(), group=groups)
def test_group_metadata(kafka: KafkaAssignors, version: int, group_id: str, group: GroupMetadata) -> None:
    ours = encode_group_metadata_key(group_id), encode_group_metadata(group, version=version)

    value = _group_value(decode_group_metadata(ours[1]), version)
    kafkas = _encoded_record(kafka, 2, version, {"group": group_id}, value)
    assert ours == kafkas
    assert group_id_of(kafkas[0]) == group_id
    assert _decoded_record(kafka, *ours) == {
        "type": 2,
        "version": version,
        "key": {"group": group_id},
        "value": value,
    }


@SOME
@given(group_id=texts(), epoch=int32s, metadata_hash=st.none() | st.integers(1, 2**63 - 1))
def test_group_epoch(kafka: KafkaAssignors, group_id: str, epoch: int, metadata_hash: int | None) -> None:
    value = {"epoch": epoch} | ({} if metadata_hash is None else {"metadataHash": metadata_hash})

    _, kafkas = _encoded_record(kafka, 3, 0, {"groupId": group_id}, value)
    assert decode_group_epoch(kafkas) == epoch
    assert metadata_hash is not None or encode_group_epoch(epoch) == kafkas


def _encoded_record(
    kafka: KafkaAssignors, record_type: int, version: int, key: Mapping[str, Any], value: Mapping[str, Any]
) -> tuple[bytes, bytes]:
    question = {"do": "encode", "what": "record", "type": record_type, "version": version}
    answer = kafka.ask(question | {"key": key, "value": value})
    return bytes.fromhex(answer["key"]), bytes.fromhex(answer["value"])


def _decoded_record(kafka: KafkaAssignors, key: bytes, value: bytes) -> Any:
    return kafka.ask({"do": "decode", "what": "record", "key": key.hex(), "value": value.hex()})


def _held_by(commit: OffsetCommitValue, version: int) -> OffsetCommitValue:
    """The commit without the fields that a version does not have."""
    return replace(
        commit,
        leader_epoch=commit.leader_epoch if version >= 3 else None,
        expire_timestamp_ms=commit.expire_timestamp_ms if version == 1 else None,
        topic_id=commit.topic_id if version == 4 else None,
    )


def _commit_key(key: OffsetCommitKey) -> dict[str, Any]:
    return {"group": key.group_id, "topic": key.topic, "partition": key.partition}


def _commit_value(commit: OffsetCommitValue, version: int) -> dict[str, Any]:
    """A commit as Kafka's generated converters write it."""
    value: dict[str, Any] = {
        "offset": commit.committed_offset,
        "metadata": commit.metadata,
        "commitTimestamp": commit.commit_timestamp_ms,
    }
    if version >= 3:
        value["leaderEpoch"] = -1 if commit.leader_epoch is None else commit.leader_epoch
    if version == 1:
        value["expireTimestamp"] = -1 if commit.expire_timestamp_ms is None else commit.expire_timestamp_ms
    if commit.topic_id is not None:
        value["topicId"] = base64.urlsafe_b64encode(commit.topic_id).decode().rstrip("=")
    return value


def _group_value(group: GroupMetadata, version: int) -> dict[str, Any]:
    """A group as Kafka's generated converters write it."""
    value: dict[str, Any] = {
        "protocolType": group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": [_member_value(member, version) for member in group.members],
    }
    if version >= 2:
        value["currentStateTimestamp"] = group.state_timestamp_ms
    return value


def _member_value(member: GroupMember, version: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        "memberId": member.member_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "sessionTimeout": member.session_timeout_ms,
        "subscription": base64.b64encode(member.subscription).decode(),
        "assignment": base64.b64encode(member.assignment).decode(),
    }
    if version >= 1:
        value["rebalanceTimeout"] = member.rebalance_timeout_ms
    if version >= 3:
        value["groupInstanceId"] = member.group_instance_id
    return value
