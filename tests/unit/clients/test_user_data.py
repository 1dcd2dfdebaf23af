"""User data: the bytes, and what is made of bytes that are none."""

import pytest

from assignor.clients.user_data import (
    NO_EPOCH,
    UNKNOWN,
    Standing,
    encode_epoch,
    encode_standing,
    epoch_of,
    standing_of,
)
from assignor.protocol.sticky import Claims

STANDING = Standing(claims=Claims(owned={"t": (0, 2)}, generation=5), plan_epoch=9, held=True)
BYTES = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000002 00000005 0000000000000009 01")


def test_standing_is_written_as_documented() -> None:
    assert encode_standing(STANDING) == BYTES


def test_standing_survives_a_round_trip() -> None:
    assert standing_of(BYTES) == STANDING


def test_bytes_that_a_later_version_appends_are_ignored() -> None:
    assert standing_of(b"\x00\x01" + BYTES[2:] + b"more") == STANDING


@pytest.mark.parametrize(
    "data", [None, b"", BYTES[:-1], b"\xff\xff" + BYTES[2:]], ids=["none", "empty", "cut", "negative version"]
)
def test_user_data_that_cannot_be_read_says_nothing(data: bytes | None) -> None:
    assert standing_of(data) == UNKNOWN


def test_epoch_survives_a_round_trip() -> None:
    assert epoch_of(encode_epoch(2**40)) == 2**40


@pytest.mark.parametrize(
    "data", [None, b"", encode_epoch(3)[:-1], encode_epoch(-3)], ids=["none", "empty", "cut", "negative"]
)
def test_answer_that_cannot_be_read_has_no_epoch(data: bytes | None) -> None:
    assert epoch_of(data) == NO_EPOCH
