from dataclasses import replace
from typing import Any

import pytest

from assignor.errors import DecodeError, EncodeError
from assignor.protocol.kafka.offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_offset_commit_key,
    decode_offset_commit_value,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
    group_id_of,
    record_type_of,
)
from assignor.protocol.kafka.record_types import GroupType, RecordType, group_type_of
from tests.golden import offsets as golden

KEY = OffsetCommitKey(group_id="g", topic="t", partition=3)


COMMIT = OffsetCommitValue(
    committed_offset=42, leader_epoch=7, metadata="m", commit_timestamp_ms=golden.TIMESTAMP_MS
)


def commit(**fields: Any) -> OffsetCommitValue:
    return replace(COMMIT, **fields)


GOLDEN_VALUES = {
    "v0": (golden.V0, 0, commit(leader_epoch=None)),
    "v1": (golden.V1, 1, commit(leader_epoch=None)),
    "v2": (golden.V2, 2, commit(leader_epoch=None)),
    "v3": (golden.V3, 3, commit()),
    "v4": (golden.V4, 4, commit()),
    "v4 with topic id": (golden.V4_TOPIC_ID, 4, commit(topic_id=golden.TOPIC_ID)),
    "v4 with a length of two bytes": (golden.V4_LONG_METADATA, 4, commit(metadata="m" * 200)),
    "broker, manual commit": (
        golden.BROKER_V4,
        4,
        commit(
            committed_offset=3,
            leader_epoch=None,
            metadata="meta-é\0",
            commit_timestamp_ms=1_795_189_042_300,
            topic_id=golden.TOPIC_ID,
        ),
    ),
    "broker, transactional commit": (
        golden.BROKER_V4_TRANSACTIONAL,
        4,
        commit(committed_offset=5, leader_epoch=None, metadata="", commit_timestamp_ms=1_795_189_043_552),
    ),
}


@pytest.mark.parametrize(("data", "version", "value"), GOLDEN_VALUES.values(), ids=GOLDEN_VALUES)
def test_golden_value_is_decoded_and_encoded(data: bytes, version: int, value: OffsetCommitValue) -> None:
    assert value == decode_offset_commit_value(data)
    assert data == encode_offset_commit_value(value, version=version)


@pytest.mark.parametrize("key", [golden.KEY_COMMIT, golden.KEY_LEGACY_COMMIT], ids=["type 1", "type 0"])
def test_golden_key_is_decoded(key: bytes) -> None:
    assert decode_offset_commit_key(key) == KEY


def test_keys_are_encoded_to_the_golden_bytes() -> None:
    assert encode_offset_commit_key(KEY) == golden.KEY_COMMIT
    assert encode_group_metadata_key("g") == golden.KEY_GROUP


def test_explicit_retention_of_version_1_is_kept() -> None:
    value = commit(leader_epoch=None, expire_timestamp_ms=1_800_000_000_000)

    assert value == decode_offset_commit_value(encode_offset_commit_value(value, version=1))


@pytest.mark.parametrize("name", ["V0", "V1", "V2", "V3", "V4", "V4_TOPIC_ID"])
def test_bytes_after_the_last_field_are_ignored(name: str) -> None:
    data: bytes = getattr(golden, name)

    assert decode_offset_commit_value(data) == decode_offset_commit_value(data + b"\xff\x01")


def test_unknown_tags_are_skipped_by_size() -> None:
    data = golden.V4[:-1] + bytes.fromhex("02 05 03 aaaaaa 00 10") + golden.TOPIC_ID

    assert commit(topic_id=golden.TOPIC_ID) == decode_offset_commit_value(data)


def test_zero_topic_id_says_nothing() -> None:
    data = golden.V4_TOPIC_ID.replace(golden.TOPIC_ID, bytes(16))

    assert decode_offset_commit_value(data).topic_id is None


def test_metadata_that_is_not_utf_8_does_not_cost_the_commit() -> None:
    data = golden.V3.replace(b"\x00\x01m", b"\x00\x01\xff")

    assert commit(metadata="\ufffd") == decode_offset_commit_value(data)


@pytest.mark.parametrize(
    "timestamp_ms", [-(2**63), -1, 253_402_300_800_000, 2**63 - 1], ids=["least", "-1", "year 10000", "most"]
)
def test_time_that_no_table_can_hold_is_unknown(timestamp_ms: int) -> None:
    data = encode_offset_commit_value(commit(commit_timestamp_ms=timestamp_ms))

    assert decode_offset_commit_value(data).commit_timestamp_ms is None


@pytest.mark.parametrize("value", [golden.V3, golden.V4, golden.V4_TOPIC_ID], ids=["v3", "v4", "topic id"])
def test_negative_offset_is_no_commit(value: bytes) -> None:
    assert decode_offset_commit_value(value[:2] + b"\xff" * 8 + value[10:]) is None


BAD_VALUES = {
    "empty": (b"", "version: 2 bytes needed, 0 left", 0),
    "unknown version": (b"\x00\x05" + golden.V4[2:], "unknown version 5", 0),
    "negative version": (b"\xff\xff" + golden.V4[2:], "unknown version -1", 0),
    "truncated offset": (golden.V3[:9], "offset: 8 bytes needed, 7 left", 2),
    "truncated after a negative offset": (
        b"\x00\x03" + b"\xff" * 8 + golden.V3[10:14],
        "metadata: 2 bytes needed, 0 left",
        14,
    ),
    "null metadata": (golden.V3[:14] + b"\xff\xff" + golden.V3[17:], "metadata: null", 16),
    "null compact metadata": (golden.V4[:14] + b"\x00" + golden.V4[16:], "metadata: null", 15),
    "negative length": (golden.V3[:14] + b"\x80\x00", "metadata: negative length -32768", 16),
    "endless varint": (golden.V4[:14] + b"\xff" * 9, "metadata: varint longer than 5 bytes", 19),
    "no tags": (golden.V4[:-1], "tag count: 1 bytes needed, 0 left", 24),
    "topic id of 15 bytes": (
        golden.V4[:-1] + b"\x01\x00\x0f" + b"x" * 15,
        "topic id of 15 bytes, not 16",
        42,
    ),
}


@pytest.mark.parametrize(("data", "reason", "position"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_bad_value_is_told_with_reason_and_position(data: bytes, reason: str, position: int) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_offset_commit_value(data)

    assert (reason, position) == (caught.value.reason, caught.value.position)


BAD_KEYS = {
    "empty": (b"", "record type: 2 bytes needed, 0 left"),
    "group metadata": (golden.KEY_GROUP, "record type 2 is not an offset commit"),
    "null group": (b"\x00\x01\xff\xff", "group id: null"),
    "truncated topic": (golden.KEY_COMMIT[:6] + b"\x09t", "topic: 9 bytes needed, 1 left"),
    "group that is not UTF-8": (b"\x00\x01\x00\x01\xff\x00\x01t\x00\x00\x00\x03", "group id: not UTF-8"),
    "truncated partition": (golden.KEY_COMMIT[:-1], "partition: 4 bytes needed, 3 left"),
    "negative partition": (golden.KEY_COMMIT[:-4] + b"\xff" * 4, "negative partition -1"),
}


@pytest.mark.parametrize(("key", "reason"), BAD_KEYS.values(), ids=BAD_KEYS)
def test_bad_key_is_told_with_its_reason(key: bytes, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_offset_commit_key(key)

    assert reason == caught.value.reason


def test_string_longer_than_its_length_field_is_refused() -> None:
    with pytest.raises(EncodeError, match="32768 bytes"):
        encode_group_metadata_key("x" * 32_768)


def test_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EncodeError, match="does not fit into 4 bytes"):
        encode_offset_commit_key(OffsetCommitKey(group_id="g", topic="t", partition=2**31))


@pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
def test_group_id_is_read_from_a_key_of_any_known_type(record_type: RecordType) -> None:
    key = int(record_type).to_bytes(2, "big") + b"\x00\x02ab" + b"\x00\x01m"

    assert group_id_of(key) == "ab"


@pytest.mark.parametrize("record_type", [-1, 18, 24, 0x7FFF])
def test_group_id_of_an_unknown_type_is_refused(record_type: int) -> None:
    key = record_type.to_bytes(2, "big", signed=True) + b"\x00\x02ab"

    with pytest.raises(DecodeError, match=f"unknown record type {record_type}"):
        group_id_of(key)


def test_record_type_may_be_unknown() -> None:
    assert record_type_of(b"\x00\x12") == 18


@pytest.mark.parametrize(
    ("record_type", "group_type"),
    [
        (RecordType.LEGACY_OFFSET_COMMIT, None),
        (RecordType.OFFSET_COMMIT, None),
        (RecordType.GROUP_METADATA, GroupType.CLASSIC),
        (RecordType.CONSUMER_GROUP_METADATA, GroupType.CONSUMER),
        (RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, GroupType.CONSUMER),
        (RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, GroupType.SHARE),
        (RecordType.STREAMS_GROUP_TOPOLOGY, GroupType.STREAMS),
    ],
    ids=lambda value: getattr(value, "name", "none"),
)
def test_record_type_implies_the_group_type(record_type: RecordType, group_type: GroupType | None) -> None:
    assert group_type is group_type_of(record_type)
