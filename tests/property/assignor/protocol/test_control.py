"""Control record: round trip, and one form of bytes for equal records."""

from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from assignor.protocol import control
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord
from assignor.protocol.migration import Migration
from assignor.protocol.ranges import format_ranges, parse_ranges
from tests.support.bytes_strategies import texts

partitions = st.integers(0, 2**31 - 1)
partition_sets = st.sets(st.integers(0, 20) | partitions, max_size=6).map(lambda some: tuple(sorted(some)))
by_topic = st.dictionaries(texts(), partition_sets, max_size=2)
seconds = st.none() | st.floats(allow_nan=False, allow_infinity=False)
instants = st.integers(0, 253_402_300_799_999)
members = st.builds(
    ControlMember,
    instance=st.none() | texts(),
    client=texts(),
    host=texts(),
    base=by_topic,
    target=by_topic,
)
moves = st.builds(
    ControlMove,
    topic=texts(),
    partition=partitions,
    from_member=st.none() | texts(),
    to_member=st.none() | texts(),
)
records = st.builds(
    ControlRecord,
    cluster=texts(),
    group=texts(),
    epoch=st.integers(1, 2**63 - 1),
    strategy=texts(),
    dry_run=st.booleans(),
    group_protocol=st.sampled_from(["classic", "consumer"]) | texts(),
    created_at_ms=instants,
    valid_until_ms=instants,
    base_generation=st.integers(-1, 2**31 - 1),
    base_protocol=texts(),
    migration=st.sampled_from(get_args(Migration)),
    members=st.dictionaries(texts(), members, max_size=3),
    moves=st.lists(moves, max_size=3, unique_by=lambda move: (move.topic, move.partition)).map(
        lambda some: tuple(sorted(some, key=lambda move: (move.topic, move.partition)))
    ),
    unassigned=st.dictionaries(texts(), by_topic, max_size=2),
    why=st.builds(
        ControlReasons,
        drain_s_before=seconds,
        drain_s_after=seconds,
        drain_s_bound=seconds,
        lag=st.integers(0, 2**63 - 1),
    ),
)


@given(records)
def test_record_survives_a_round_trip(record: ControlRecord) -> None:
    assert control.decode(control.encode(record)) == record


@given(records)
def test_order_of_members_and_moves_does_not_change_the_bytes(record: ControlRecord) -> None:
    reordered = replace(record, members=dict(reversed(record.members.items())), moves=record.moves[::-1])

    assert control.encode(reordered) == control.encode(record)


@given(texts(), texts())
def test_key_survives_a_round_trip(cluster: str, group: str) -> None:
    assert control.decode_key(control.encode_key(cluster, group)) == (cluster, group)


@given(st.lists(st.integers(0, 30) | partitions, max_size=12))
def test_ranges_survive_a_round_trip(some: list[int]) -> None:
    assert parse_ranges(format_ranges(some), at_most=12) == tuple(sorted(set(some)))
