"""Records of groups of KIP-848: Kafka's bytes, ours, and damaged ones."""

from collections.abc import Callable
from contextlib import suppress
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
    MemberState,
    RecordKey,
    decode_assignment_epoch,
    decode_current_assignment,
    decode_group_epoch,
    decode_member_metadata,
    decode_record_key,
    decode_regular_expression,
    decode_target_assignment,
    encode_assignment_epoch,
    encode_current_assignment,
    encode_group_epoch,
    encode_member_metadata,
    encode_record_key,
    encode_regular_expression,
    encode_target_assignment,
)
from assignor.protocol.kafka.record_types import RecordType
from tests.golden import offsets as golden
from tests.support.bytes_strategies import damaged, texts
from tests.support.groups.consumer_group_values import (
    assignments,
    current_assignments,
    int32s,
    member_metadata,
    regular_expressions,
)

VALUES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "group epoch": (int32s, encode_group_epoch, decode_group_epoch),
    "assignment epoch": (int32s, encode_assignment_epoch, decode_assignment_epoch),
    "member metadata": (member_metadata, encode_member_metadata, decode_member_metadata),
    "target assignment": (assignments, encode_target_assignment, decode_target_assignment),
    "current assignment": (current_assignments, encode_current_assignment, decode_current_assignment),
    "regular expression": (regular_expressions, encode_regular_expression, decode_regular_expression),
}
EACH_VALUE = pytest.mark.parametrize("what", VALUES)


def test_epochs_of_a_real_broker_are_read() -> None:
    assert decode_group_epoch(golden.BROKER_CONSUMER_GROUP) == 2
    # After the last member has left, the record has no hash of the topics.
    assert decode_group_epoch(golden.BROKER_CONSUMER_GROUP_LEFT) == 4


def test_assignment_epoch_is_read_with_and_without_its_time() -> None:
    assert decode_assignment_epoch(bytes.fromhex("0000 00000007 00")) == 7
    assert decode_assignment_epoch(bytes.fromhex("0000 00000007 01 00 08 0000018bcfe56800")) == 7


def test_member_that_kafka_wrote_is_read_and_written() -> None:
    native = MemberMetadata(
        rack_id="r",
        client_id="c",
        client_host="/h",
        topic_names=("t",),
        rebalance_timeout_ms=5,
        server_assignor="uniform",
    )
    classic = ClassicMember(session_timeout_ms=9, protocols=(("range", b"\x00\x00"),))

    assert decode_member_metadata(golden.CONSUMER_MEMBER) == native
    assert decode_member_metadata(golden.CONSUMER_MEMBER_CLASSIC).classic == classic
    assert encode_member_metadata(native) == golden.CONSUMER_MEMBER
    assert encode_member_metadata(decode_member_metadata(golden.CONSUMER_MEMBER_CLASSIC)) == (
        golden.CONSUMER_MEMBER_CLASSIC
    )


def test_member_and_assignment_of_a_real_broker_are_read() -> None:
    assert decode_member_metadata(golden.BROKER_CONSUMER_MEMBER) == MemberMetadata(
        client_id="x",
        client_host="/127.0.0.1",
        topic_names=("t",),
        topic_regex="",
        rebalance_timeout_ms=300_000,
    )
    topic_id = bytes.fromhex("1ab3afcd05aa43dd8cb518c2d0b004c8")
    current = decode_current_assignment(golden.BROKER_CONSUMER_CURRENT)
    assert (current.member_epoch, current.assigned) == (1, ((topic_id, (0, 1, 2)),))


@pytest.mark.parametrize("null", [b"\xff", b"\x00"])
def test_classic_member_that_is_null_in_its_tag_is_none(null: bytes) -> None:
    assert decode_member_metadata(golden.CONSUMER_MEMBER[:-1] + b"\x01\x00\x01" + null).classic is None


def test_classic_member_that_is_neither_null_nor_there_is_refused() -> None:
    with pytest.raises(DecodeError, match="classic member: presence 7"):
        decode_member_metadata(golden.CONSUMER_MEMBER[:-1] + b"\x01\x00\x02\x07\x00")


def test_current_assignment_that_kafka_wrote_is_read() -> None:
    topic_id = bytes.fromhex("0000000000000001 0000000000000002")

    assert decode_current_assignment(golden.CONSUMER_CURRENT) == CurrentAssignment(
        member_epoch=3,
        previous_member_epoch=2,
        state=MemberState.STABLE,
        assigned=((topic_id, (0, 1)),),
    )


@EACH_VALUE
@given(data=st.data())
def test_value_that_is_written_is_read(what: str, data: st.DataObject) -> None:
    source, encode, decode = VALUES[what]
    value = data.draw(source)

    assert decode(encode(value)) == value
    # Fields of later versions stand behind those that are known.
    assert decode(encode(value) + b"later") == value


@EACH_VALUE
@given(data=st.data())
def test_tags_of_later_versions_are_skipped(what: str, data: st.DataObject) -> None:
    source, encode, decode = VALUES[what]
    value = data.draw(source)
    if isinstance(value, MemberMetadata) and value.classic is not None:
        value = MemberMetadata(client_id="c", client_host="/h", rebalance_timeout_ms=1)

    assert decode(encode(value)[:-1] + b"\x01\x09\x03abc") == value


@EACH_VALUE
@given(data=st.data())
def test_damaged_value_is_read_or_refused(what: str, data: st.DataObject) -> None:
    source, encode, decode = VALUES[what]
    value = data.draw(damaged(source.map(encode)) | st.binary(max_size=60))

    with suppress(DecodeError):
        decode(value)


@EACH_VALUE
@given(data=st.data())
def test_value_that_is_cut_anywhere_is_refused(what: str, data: st.DataObject) -> None:
    source, encode, decode = VALUES[what]
    whole = encode(data.draw(source))
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(DecodeError):
        decode(whole[:cut])


@EACH_VALUE
@given(data=st.data(), version=st.integers(1, 2**15 - 1) | st.integers(-(2**15), -1))
def test_unknown_version_is_refused(what: str, data: st.DataObject, version: int) -> None:
    source, encode, decode = VALUES[what]
    value = version.to_bytes(2, "big", signed=True) + encode(data.draw(source))[2:]

    with pytest.raises(DecodeError, match=f"unknown version {version}"):
        decode(value)


def test_negative_partition_and_array_that_cannot_fit_are_refused() -> None:
    with pytest.raises(DecodeError, match="negative partition -1"):
        decode_target_assignment(encode_target_assignment(((b"i" * 16, (3, -1)),)))
    with pytest.raises(DecodeError, match="items cannot fit"):
        decode_target_assignment(b"\x00\x00\xff\xff\xff\xff\x0f")
    with pytest.raises(DecodeError, match="target assignment: null"):
        decode_target_assignment(b"\x00\x00\x00\x00")


@given(group_id=texts(), name=texts())
def test_key_that_is_written_is_read(group_id: str, name: str) -> None:
    for record_type in NAMED_TYPES:
        key = RecordKey(record_type=record_type, group_id=group_id, name=name)
        assert decode_record_key(encode_record_key(key)) == key
    header = RecordKey(record_type=RecordType.CONSUMER_GROUP_METADATA, group_id=group_id)
    assert decode_record_key(encode_record_key(header)) == header


@given(key=st.binary(max_size=20) | st.binary(max_size=12).map(lambda rest: b"\x00\x05\x00\x01g" + rest))
def test_damaged_key_is_read_or_refused(key: bytes) -> None:
    with suppress(DecodeError):
        decode_record_key(key)


def test_key_of_another_type_is_refused() -> None:
    with pytest.raises(DecodeError, match="record type 10 is not a consumer group record"):
        decode_record_key(b"\x00\x0a\x00\x01g\x00\x01m")
