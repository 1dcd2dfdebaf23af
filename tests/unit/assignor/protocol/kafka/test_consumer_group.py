"""The group's own record of KIP-848."""

import pytest

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer_group import decode_group_epoch, encode_group_epoch
from tests.golden import offsets as golden


def test_epochs_of_a_real_broker_are_read() -> None:
    assert decode_group_epoch(golden.BROKER_CONSUMER_GROUP) == 2
    # After the last member has left, the record has no hash of the topics.
    assert decode_group_epoch(golden.BROKER_CONSUMER_GROUP_LEFT) == 4


def test_epoch_that_is_written_is_read() -> None:
    assert decode_group_epoch(encode_group_epoch(2**31 - 1)) == 2**31 - 1


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x01\x00\x00\x00\x01\x00", b"\x00\x00\x00\x00\x00"])
def test_unknown_version_and_torn_value_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_group_epoch(value)
