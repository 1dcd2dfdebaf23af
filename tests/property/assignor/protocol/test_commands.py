"""Standing orders: round trip, and no bytes that do more than be refused."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol import commands
from assignor.protocol.commands import Approval, Orders
from tests.support.bytes_strategies import damaged, texts

instants = st.integers(0, 253_402_300_799_999)
partitions = st.integers(0, 20) | st.integers(0, 2**31 - 1)
pins = st.sets(partitions, max_size=6).map(lambda some: tuple(sorted(some)))
some_orders = st.builds(
    Orders,
    cluster=texts(),
    group=texts(),
    paused=st.booleans(),
    pause_reason=texts(),
    pinned=st.dictionaries(texts(), pins, max_size=3),
    triggered_at_ms=st.none() | instants,
    resumed_at_ms=st.none() | instants,
    approval=st.none()
    | st.builds(Approval, target_hash=texts(), base_hash=texts(), reason=texts(), by=texts(), at_ms=instants),
    at_ms=instants,
    by=texts(),
)
keys = some_orders.map(commands.encode_key)
values = some_orders.map(commands.encode)


@given(some_orders)
def test_orders_survive_a_round_trip(orders: Orders) -> None:
    assert commands.decode(commands.encode_key(orders), commands.encode(orders)) == orders


@given(st.binary(max_size=60) | keys | damaged(keys), st.binary(max_size=60) | values | damaged(values))
def test_bytes_are_decoded_or_refused(key: bytes, value: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert commands.encode_key(commands.decode(key, value)) == key


@given(some_orders, st.data())
def test_damaged_value_under_its_own_key_is_decoded_or_refused(orders: Orders, data: st.DataObject) -> None:
    value = data.draw(damaged(st.just(commands.encode(orders))))

    with contextlib.suppress(DecodeError):
        commands.encode(commands.decode(commands.encode_key(orders), value))
