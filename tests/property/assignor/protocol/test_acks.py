"""Acknowledgements: round trip, and no bytes that do more than be refused."""

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import Accepted, AnyAck, Applied, Follows, Refused, Release, Taken, Void
from tests.support.bytes_strategies import damaged, texts

longs = st.integers(1, 2**63 - 1)
ints = st.integers(0, 2**31 - 1)
head: dict[str, st.SearchStrategy[Any]] = {
    "cluster": texts(),
    "group": texts(),
    "generation": ints,
    "epoch": longs,
    "member": texts(),
    "at_ms": st.integers(0, 253_402_300_799_999),
}
place: dict[str, st.SearchStrategy[Any]] = {"topic": texts(), "partition": ints, "hop": longs}
some_acks: st.SearchStrategy[AnyAck] = st.one_of(
    st.builds(Follows, **head),
    st.builds(Accepted, **head),
    st.builds(Applied, **head),
    st.builds(Refused, **head, why=texts()),
    st.builds(Void, **head, why=texts()),
    st.builds(Release, **head, **place, to=texts(), offset=longs),
    st.builds(Taken, **head, **place),
)


@given(some_acks)
def test_acknowledgement_survives_a_round_trip(ack: AnyAck) -> None:
    assert acks.decode(acks.encode_key(ack), acks.encode(ack)) == ack


values = some_acks.map(acks.encode)
keys = some_acks.map(acks.encode_key)


@given(some_acks, some_acks)
def test_keys_of_a_group_begin_alike_and_no_others_do(ack: AnyAck, other: AnyAck) -> None:
    of_one_group = (ack.cluster, ack.group) == (other.cluster, other.group)

    assert acks.encode_key(other).startswith(acks.key_head(ack.cluster, ack.group)) == of_one_group
    assert acks.encode_key(ack).startswith(acks.key_head(ack.cluster, ack.group))


@given(st.binary(max_size=60) | keys | damaged(keys), st.binary(max_size=60) | values | damaged(values))
def test_bytes_are_decoded_or_refused(key: bytes, value: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert acks.encode_key(acks.decode(key, value)) == key


@given(some_acks, st.data())
def test_damaged_value_under_its_own_key_is_decoded_or_refused(ack: AnyAck, data: st.DataObject) -> None:
    value = data.draw(damaged(st.just(acks.encode(ack))))

    with contextlib.suppress(DecodeError):
        acks.decode(acks.encode_key(ack), value)
