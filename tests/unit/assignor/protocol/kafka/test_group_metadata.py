from dataclasses import replace

import pytest

from assignor.errors import DecodeError
from assignor.protocol.kafka.group_metadata import (
    GroupMember,
    GroupMetadata,
    decode_group_metadata,
    encode_group_metadata,
)
from tests.golden import consumer as golden

MEMBER = GroupMember(
    member_id="m1",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=1,
    session_timeout_ms=2,
    subscription=b"\x00\x00",
    assignment=b"",
)
GROUP = GroupMetadata(
    protocol_type="consumer",
    generation=5,
    protocol="range",
    leader="m1",
    state_timestamp_ms=1_700_000_000_000,
    members=(MEMBER,),
)


def test_golden_group_is_decoded_and_encoded() -> None:
    assert decode_group_metadata(golden.GROUP_V3) == GROUP
    assert encode_group_metadata(GROUP) == golden.GROUP_V3


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, replace(GROUP, state_timestamp_ms=-1, members=(replace(MEMBER, rebalance_timeout_ms=-1),))),
        (1, replace(GROUP, state_timestamp_ms=-1)),
        (2, GROUP),
        (3, replace(GROUP, members=(replace(MEMBER, group_instance_id="i"),))),
        (4, replace(GROUP, members=(replace(MEMBER, group_instance_id="i"),))),
    ],
)
def test_version_keeps_the_fields_it_has(version: int, expected: GroupMetadata) -> None:
    static = replace(GROUP, members=(replace(MEMBER, group_instance_id="i"),))

    assert decode_group_metadata(encode_group_metadata(static, version=version)) == expected


def test_version_4_skips_unknown_tags_of_members_and_of_the_group() -> None:
    plain = encode_group_metadata(GROUP, version=4)
    tagged = plain[:-2] + bytes.fromhex("01 05 02 abcd") + bytes.fromhex("01 09 00")

    assert decode_group_metadata(tagged) == decode_group_metadata(plain)


def test_group_without_members_has_no_protocol_and_no_leader() -> None:
    empty = replace(GROUP, protocol_type="", generation=0, protocol=None, leader=None, members=())

    assert decode_group_metadata(encode_group_metadata(empty)) == empty


def test_bytes_after_the_last_field_are_ignored() -> None:
    assert decode_group_metadata(golden.GROUP_V3 + b"\x01") == GROUP


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"\x00\x05", "unknown version 5", id="version"),
        pytest.param(b"\xff\xff", "unknown version -1", id="negative version"),
        pytest.param(golden.GROUP_V3[:-1], "assignment: 4 bytes needed, 3 left", id="truncated"),
        pytest.param(
            golden.GROUP_V3[:35] + b"\x7f\xff\xff\xff",
            "members: 2147483647 items cannot fit into 0 bytes",
            id="count that asks for all memory",
        ),
        pytest.param(
            golden.GROUP_V3.replace(b"consumer", b"consum\xff\xff"), "protocol type: not UTF-8", id="utf-8"
        ),
    ],
)
def test_bad_group_is_told_with_its_reason(value: bytes, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_group_metadata(value)

    assert caught.value.reason == reason
