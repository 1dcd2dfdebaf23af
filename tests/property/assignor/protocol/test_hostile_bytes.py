"""No decoder raises anything but `DecodeError`, whatever it is given."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol import control
from assignor.protocol.instants import parse_instant
from assignor.protocol.kafka.consumer import decode_assignment, decode_subscription
from assignor.protocol.kafka.consumer_group import decode_group_epoch
from assignor.protocol.kafka.group_metadata import decode_group_metadata
from assignor.protocol.kafka.offsets import (
    decode_offset_commit_key,
    decode_offset_commit_value,
    group_id_of,
    record_type_of,
)
from assignor.protocol.kafka.sticky import claims_of, decode_sticky_user_data
from assignor.protocol.ranges import parse_ranges
from tests.golden import consumer as consumer_golden
from tests.golden import offsets as offsets_golden
from tests.support.bytes_strategies import damaged

CONTROL_VALUE = (
    b'{"schema":1,"cluster":"c","group":"g","epoch":1,"strategy":"s","dry_run":true,"created_at":'
    b'"2026-01-31T12:00:00.000Z","valid_until":"2026-01-31T12:00:00.000Z","base":{"generation":1,"protocol":"p"},'
    b'"members":{"m":{"instance":null,"client":"c","host":"h","base":{"t":"0-5,9"},"target":{}}},"moves":[],'
    b'"unassigned":{},"why":{"drain_s_before":1.5,"drain_s_after":null,"drain_s_bound":0,"lag":3}}'
)


def golden_of(module: object) -> list[bytes]:
    return [value for value in vars(module).values() if isinstance(value, bytes)]


GOLDEN = [*golden_of(consumer_golden), *golden_of(offsets_golden), CONTROL_VALUE]
hostile = st.binary(max_size=60) | st.sampled_from(GOLDEN) | damaged(st.sampled_from(GOLDEN))


def decode_claims(data: bytes) -> None:
    for protocol in ("sticky", "cooperative-sticky", "range"):
        claims_of(protocol, decode_subscription(data))


DECODERS: dict[str, Callable[[bytes], object]] = {
    "record type": record_type_of,
    "group id": group_id_of,
    "offset commit key": decode_offset_commit_key,
    "offset commit value": decode_offset_commit_value,
    "group metadata": decode_group_metadata,
    "group epoch": decode_group_epoch,
    "subscription": decode_subscription,
    "assignment": decode_assignment,
    "sticky user data": decode_sticky_user_data,
    "claims": decode_claims,
    "control record": control.decode,
    "control key": control.decode_key,
}


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
@given(data=hostile)
def test_bytes_are_decoded_or_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        decode(data)


@given(st.text() | st.text("0123456789-,"))
def test_ranges_are_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(DecodeError):
        assert len(parse_ranges(text, at_most=1000)) <= 1000


@given(st.text() | st.text("0123456789-:.TZ", max_size=26))
def test_instants_are_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(DecodeError):
        assert parse_instant(text) < 253_402_300_800_000
