"""User data: the bytes, and what is made of bytes that are none."""

import pytest

from assignor.clients.plugin.user_data import (
    NO_EPOCH,
    UNKNOWN,
    LeaderWord,
    Outcome,
    Standing,
    encode_standing,
    encode_word,
    standing_of,
    word_of,
)
from assignor.protocol.kafka.sticky import Claims

STANDING = Standing(claims=Claims(owned={"t": (0, 2)}, generation=5), plan_epoch=9, held=True)
BYTES = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000002 00000005 0000000000000009 01")

REFUSAL = LeaderWord(epoch=2**40, outcome=Outcome.REFUSED, why="no")
REFUSAL_BYTES = bytes.fromhex("0000 0000010000000000 02 0002 6e6f")


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


def test_word_is_written_as_documented() -> None:
    assert encode_word(REFUSAL) == REFUSAL_BYTES


def test_word_survives_a_round_trip() -> None:
    assert word_of(REFUSAL_BYTES + b"more") == REFUSAL


@pytest.mark.parametrize(
    "data",
    [None, b"", REFUSAL_BYTES[:-1], b"\xff\xff" + REFUSAL_BYTES[2:]],
    ids=["none", "empty", "cut", "negative version"],
)
def test_word_that_cannot_be_read_says_nothing(data: bytes | None) -> None:
    assert word_of(data) == LeaderWord(epoch=NO_EPOCH)


def test_negative_epoch_is_none() -> None:
    assert word_of(encode_word(LeaderWord(epoch=-3))).epoch == NO_EPOCH


def test_outcome_of_a_later_version_is_silence() -> None:
    later = REFUSAL_BYTES[:10] + b"\x07" + REFUSAL_BYTES[11:]

    assert word_of(later).outcome is Outcome.SILENT
