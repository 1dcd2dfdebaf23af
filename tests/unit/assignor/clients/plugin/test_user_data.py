"""User data: the bytes, and what is made of bytes that are none."""

import pytest

from assignor.clients.plugin.user_data import (
    NO_EPOCH,
    UNKNOWN,
    AssignmentData,
    Outcome,
    SubscriptionData,
    assignment_data_of,
    encode_assignment_data,
    encode_subscription_data,
    subscription_data_of,
)
from assignor.protocol.kafka.sticky import Claims

SUBSCRIPTION = SubscriptionData(claims=Claims(owned={"t": (0, 2)}, generation=5), plan_epoch=9, held=True)
BYTES = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000002 00000005 0000000000000009 01")

REFUSAL = AssignmentData(epoch=2**40, outcome=Outcome.REFUSED, why="no")
REFUSAL_BYTES = bytes.fromhex("0000 0000010000000000 02 0002 6e6f")


def test_subscription_data_is_written_as_documented() -> None:
    assert encode_subscription_data(SUBSCRIPTION) == BYTES


def test_subscription_data_survives_a_round_trip() -> None:
    assert subscription_data_of(BYTES) == SUBSCRIPTION


def test_bytes_that_a_later_version_appends_are_ignored() -> None:
    assert subscription_data_of(b"\x00\x01" + BYTES[2:] + b"more") == SUBSCRIPTION


@pytest.mark.parametrize(
    "data", [None, b"", BYTES[:-1], b"\xff\xff" + BYTES[2:]], ids=["none", "empty", "cut", "negative version"]
)
def test_user_data_that_cannot_be_read_says_nothing(data: bytes | None) -> None:
    assert subscription_data_of(data) == UNKNOWN


def test_assignment_data_is_written_as_documented() -> None:
    assert encode_assignment_data(REFUSAL) == REFUSAL_BYTES


def test_assignment_data_survives_a_round_trip() -> None:
    assert assignment_data_of(REFUSAL_BYTES + b"more") == REFUSAL


@pytest.mark.parametrize(
    "data",
    [None, b"", REFUSAL_BYTES[:-1], b"\xff\xff" + REFUSAL_BYTES[2:]],
    ids=["none", "empty", "cut", "negative version"],
)
def test_assignment_data_that_cannot_be_read_says_nothing(data: bytes | None) -> None:
    assert assignment_data_of(data) == AssignmentData(epoch=NO_EPOCH)


def test_negative_epoch_is_none() -> None:
    assert assignment_data_of(encode_assignment_data(AssignmentData(epoch=-3))).epoch == NO_EPOCH


def test_outcome_of_a_later_version_is_silence() -> None:
    later = REFUSAL_BYTES[:10] + b"\x07" + REFUSAL_BYTES[11:]

    assert assignment_data_of(later).outcome is Outcome.SILENT
