"""The vectorised decoder against the scalar one, and both against bytes that nobody sane would write."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol.kafka.offsets import (
    MAX_TIMESTAMP_MS,
    NO_TOPIC_ID,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_offset_commit_key,
    decode_offset_commit_value,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
    record_type_of,
)
from assignor.protocol.kafka.record_types import KNOWN_TYPES
from pipeline.decode.offset_columns import Kind, decode_offset_commits, last_per_key
from tests.golden import offsets as golden
from tests.support.bytes_strategies import damaged, texts

int32s = st.integers(0, 2**31 - 1)
int64s = st.integers(0, 2**63 - 1)

commit_keys = st.builds(OffsetCommitKey, group_id=texts(), topic=texts(), partition=int32s)
commit_values = st.builds(
    OffsetCommitValue,
    committed_offset=int64s,
    leader_epoch=st.none() | int32s,
    metadata=texts() | st.integers(100, 20_000).map(lambda size: "x" * size),
    commit_timestamp_ms=st.none() | st.integers(0, MAX_TIMESTAMP_MS),
    topic_id=st.none() | st.binary(min_size=16, max_size=16).filter(any),
)
versions = st.integers(0, 4)

key_bytes = st.one_of(
    commit_keys.map(encode_offset_commit_key),
    commit_keys.map(lambda key: b"\x00\x00" + encode_offset_commit_key(key)[2:]),
    texts().map(encode_group_metadata_key),
    st.integers(-2, 30).map(lambda number: number.to_bytes(2, "big", signed=True) + b"\x00\x01g"),
)
value_bytes = st.builds(
    lambda value, version: encode_offset_commit_value(value, version=version), commit_values, versions
)
zero_id = golden.V4_TOPIC_ID.replace(golden.TOPIC_ID, NO_TOPIC_ID)
golden_values = st.sampled_from([golden.V0, golden.V1, golden.V3, golden.V4, golden.V4_TOPIC_ID, zero_id])
anything = st.none() | st.binary(max_size=40)
any_keys = anything | key_bytes | damaged(key_bytes)
any_values = anything | golden_values | damaged(golden_values) | value_bytes | damaged(value_bytes)
batches = st.lists(st.tuples(any_keys, any_values), max_size=12)


def scalar_row(key: bytes | None, value: bytes | None) -> tuple[object, ...]:
    """What the scalar codecs say about one record, in the form of a row of the columns."""
    if key is None:
        return (Kind.NULL_KEY, None, *[None] * 7, "null key")
    try:
        record_type = record_type_of(key)
    except DecodeError as error:
        return (Kind.BAD, None, *[None] * 7, f"key: {error}")
    if record_type in {0, 1}:
        return scalar_commit(record_type, key, value)
    if record_type not in KNOWN_TYPES:
        return (Kind.UNKNOWN_TYPE, record_type, *[None] * 7, f"unknown record type {record_type}")
    return (Kind.GROUP if record_type == 2 else Kind.OTHER, record_type, *[None] * 8)


def scalar_commit(record_type: int, key: bytes, value: bytes | None) -> tuple[object, ...]:
    where = "key"
    try:
        for_what = decode_offset_commit_key(key)
        where = "value"
        commit = None if value is None else decode_offset_commit_value(value)
    except DecodeError as error:
        return (Kind.BAD, record_type, *[None] * 7, f"{where}: {error}")
    names = (for_what.group_id, for_what.topic, for_what.partition)
    if commit is None:
        return (Kind.TOMBSTONE, record_type, *names, *[None] * 5)
    figures = (commit.committed_offset, commit.leader_epoch, commit.commit_timestamp_ms, commit.topic_id)
    return (Kind.COMMIT, record_type, *names, *figures, None)


@given(batches, st.sampled_from([pa.binary(), pa.large_binary()]), st.integers(0, 3), st.integers(0, 3))
def test_columns_equal_the_scalar_codecs_row_by_row(
    batch: list[tuple[bytes | None, bytes | None]], type_: pa.DataType, skipped: int, left: int
) -> None:
    keys = pa.array([b"xx"] * skipped + [key for key, _ in batch] + [b"yy"] * left, type_)
    values = pa.array([None] * skipped + [value for _, value in batch] + [b"zz"] * left, type_)

    columns = decode_offset_commits(keys.slice(skipped, len(batch)), values.slice(skipped, len(batch)))

    actual = list(zip(*(getattr(columns, name).to_pylist() for name in columns.__slots__), strict=True))
    assert [scalar_row(*record) for record in batch] == actual


def near_misses(data: bytes) -> list[bytes]:
    """Every prefix, and every copy with one byte set to a value at which lengths and signs turn over."""
    edges = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)
    changed = [data[:at] + bytes([edge]) + data[at + 1 :] for at in range(len(data)) for edge in edges]
    return [data[:at] for at in range(len(data))] + changed


KEYS = (golden.KEY_COMMIT, golden.KEY_LEGACY_COMMIT, golden.KEY_GROUP)
VALUES = tuple(value for name, value in vars(golden).items() if name.startswith(("V", "BROKER")))


def test_every_near_miss_of_real_bytes_is_judged_as_the_scalar_codecs_do() -> None:
    records = [(key, golden.V3) for good in KEYS for key in near_misses(good)]
    records += [(golden.KEY_COMMIT, value) for good in VALUES for value in near_misses(good)]

    columns = decode_offset_commits(*(pa.array(part, pa.binary()) for part in zip(*records, strict=True)))

    actual = zip(*(getattr(columns, name).to_pylist() for name in columns.__slots__), strict=True)
    wrong = [record for record, row in zip(records, actual, strict=True) if row != scalar_row(*record)]
    assert not wrong


@given(commit_keys)
def test_key_survives_a_round_trip(key: OffsetCommitKey) -> None:
    assert key == decode_offset_commit_key(encode_offset_commit_key(key))


@given(commit_values)
def test_value_of_the_newest_version_survives_a_round_trip(value: OffsetCommitValue) -> None:
    assert value == decode_offset_commit_value(encode_offset_commit_value(value))


@given(st.lists(st.tuples(st.none() | st.binary(max_size=1), st.integers(0, 5)), max_size=20))
def test_last_per_key_is_what_overwriting_in_order_leaves(records: list[tuple[bytes | None, int]]) -> None:
    keys = pa.array([key for key, _ in records], pa.binary())
    record_offset = np.array([offset for _, offset in records], np.int64)

    rows = last_per_key(keys, record_offset).tolist()

    left = {}
    for number in sorted(range(len(records)), key=lambda number: (records[number][1], number)):
        left[records[number][0]] = number
    assert rows == sorted(number for key, number in left.items() if key is not None)
