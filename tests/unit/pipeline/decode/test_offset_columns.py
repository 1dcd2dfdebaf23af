import numpy as np
import pyarrow as pa
import pytest

from pipeline.decode.offset_columns import Kind, OffsetColumns, decode_offset_commits, last_per_key
from tests.golden import offsets as golden


def decoded(*records: tuple[bytes | None, bytes | None], type_: pa.DataType | None = None) -> OffsetColumns:
    binary = type_ or pa.binary()
    keys, values = zip(*records, strict=True)
    return decode_offset_commits(pa.array(keys, binary), pa.array(values, binary))


def row(columns: OffsetColumns, number: int) -> tuple[object, ...]:
    names = ("group_id", "topic", "partition", "committed_offset", "leader_epoch", "commit_timestamp_ms")
    return tuple(getattr(columns, name)[number].as_py() for name in names)


def kinds(columns: OffsetColumns) -> list[Kind]:
    return [Kind(code) for code in columns.kind.to_pylist()]


GOOD = ("g", "t", 3, 42, 7, golden.TIMESTAMP_MS)
WITHOUT_EPOCH = ("g", "t", 3, 42, None, golden.TIMESTAMP_MS)
MIXED = (
    (golden.KEY_COMMIT, golden.V4_TOPIC_ID),
    (golden.KEY_COMMIT, None),
    (golden.KEY_GROUP, b"anything"),
    (b"\x00\x05whatever", None),
    (b"\x00\x12", b""),
    (None, b"x"),
    (golden.KEY_COMMIT, golden.V3[:-1]),
    (b"\x00", b"x"),
    (golden.KEY_LEGACY_COMMIT, golden.V0),
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(golden.V0, WITHOUT_EPOCH, id="v0"),
        pytest.param(golden.V1, WITHOUT_EPOCH, id="v1"),
        pytest.param(golden.V2, WITHOUT_EPOCH, id="v2"),
        pytest.param(golden.V3, GOOD, id="v3"),
        pytest.param(golden.V4, GOOD, id="v4"),
        pytest.param(golden.V4_TOPIC_ID, GOOD, id="v4 with topic id"),
        pytest.param(golden.V4_LONG_METADATA, GOOD, id="v4 with a length of two bytes"),
        pytest.param(golden.BROKER_V4, ("g", "t", 3, 3, None, 1_795_189_042_300), id="broker"),
        pytest.param(
            golden.BROKER_V4_TRANSACTIONAL, ("g", "t", 3, 5, None, 1_795_189_043_552), id="transactional"
        ),
    ],
)
def test_golden_commit_is_decoded(value: bytes, expected: tuple[object, ...]) -> None:
    columns = decoded((golden.KEY_COMMIT, value), (golden.KEY_LEGACY_COMMIT, value))

    assert kinds(columns) == [Kind.COMMIT] * 2
    assert [expected] * 2 == [row(columns, 0), row(columns, 1)]
    assert columns.record_type.to_pylist() == [1, 0]
    assert columns.reason.null_count == 2


@pytest.mark.parametrize("value", [golden.V3, golden.V4, golden.V4_TOPIC_ID, golden.V4_LONG_METADATA])
def test_commits_as_brokers_write_them_need_no_scalar_decoder(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: bytes) -> None:
        pytest.fail("a usual commit went through the slow path")

    monkeypatch.setattr("pipeline.decode.offset_columns.decode_offset_commit_key", refuse)

    columns = decoded((golden.KEY_COMMIT, value), (golden.KEY_COMMIT, None))

    assert kinds(columns) == [Kind.COMMIT, Kind.TOMBSTONE]


def test_topic_id_is_that_of_the_record_and_null_where_it_has_none_or_zero() -> None:
    zero = golden.V4_TOPIC_ID.replace(golden.TOPIC_ID, bytes(16))
    odd = golden.V4[:-1] + bytes.fromhex("02 00 10") + golden.TOPIC_ID + bytes.fromhex("05 03 aaaaaa")
    values = (golden.V4_TOPIC_ID, golden.V4, golden.V3, zero, None, odd, golden.V4_TOPIC_ID[:-1])

    columns = decoded(*((golden.KEY_COMMIT, value) for value in values))

    ids = columns.topic_id.to_pylist()
    assert ids == [golden.TOPIC_ID, None, None, None, None, golden.TOPIC_ID, None]


def test_each_kind_of_record_is_told_apart() -> None:
    columns = decoded(*MIXED)

    assert kinds(columns) == [
        Kind.COMMIT,
        Kind.TOMBSTONE,
        Kind.GROUP,
        Kind.OTHER,
        Kind.UNKNOWN_TYPE,
        Kind.NULL_KEY,
        Kind.BAD,
        Kind.BAD,
        Kind.COMMIT,
    ]
    assert columns.record_type.to_pylist() == [1, 1, 2, 5, 18, None, 1, None, 0]
    assert columns.reason.to_pylist() == [
        None,
        None,
        None,
        None,
        "unknown record type 18",
        "null key",
        "value: commit timestamp: 8 bytes needed, 7 left (at byte 17)",
        "key: record type: 2 bytes needed, 1 left (at byte 0)",
        None,
    ]


def test_columns_are_null_where_they_say_nothing() -> None:
    columns = decoded(*MIXED)

    assert row(columns, 1) == ("g", "t", 3, None, None, None)
    assert {(None,) * 6} == {row(columns, number) for number in range(2, 8)}


def test_unusual_but_good_commit_joins_the_others() -> None:
    tagged = golden.V4[:-1] + bytes.fromhex("01 05 03 aaaaaa")

    columns = decoded((golden.KEY_COMMIT, golden.V3), (golden.KEY_COMMIT, tagged))

    assert [row(columns, 0), row(columns, 1)] == [GOOD, GOOD]


def test_metadata_with_a_length_of_three_bytes_does_not_shift_the_fields_behind_it() -> None:
    # The last byte of the timestamp is 0, which reads as "no tags" when everything is taken one byte early.
    value = golden.V4[:14] + b"\xa1\x9c\x01" + b"m" * 20_000 + golden.V4[16:]

    columns = decoded((golden.KEY_COMMIT, value))

    assert row(columns, 0) == GOOD


def test_commit_of_a_negative_offset_is_a_tombstone() -> None:
    """Coordinators accept it, and answer that the group has no commit."""
    negative = golden.V4[:2] + b"\xff" * 8 + golden.V4[10:]

    columns = decoded((golden.KEY_COMMIT, negative), (golden.KEY_COMMIT, golden.V4))

    assert kinds(columns) == [Kind.TOMBSTONE, Kind.COMMIT]
    assert [row(columns, 0), row(columns, 1)] == [("g", "t", 3, None, None, None), GOOD]


def test_group_that_is_not_utf_8_is_bad_and_its_neighbours_are_not() -> None:
    broken = golden.KEY_COMMIT.replace(b"g", b"\xff")
    accented = b"\x00\x01\x00\x02\xc3\xa9\x00\x01t\x00\x00\x00\x03"

    columns = decoded((golden.KEY_COMMIT, golden.V4), (broken, golden.V4), (accented, golden.V4))

    assert kinds(columns) == [Kind.COMMIT, Kind.BAD, Kind.COMMIT]
    assert columns.group_id.to_pylist() == ["g", None, "é"]
    assert columns.reason[1].as_py() == "key: group id: not UTF-8 (at byte 4)"


def test_sliced_arrays_are_read_from_their_own_start() -> None:
    keys = pa.array([b"rubbish", *(key for key, _ in MIXED), None, b""], pa.binary())
    values = pa.array([b"rubbish", *(value for _, value in MIXED), b"", None], pa.binary())

    columns = decode_offset_commits(keys.slice(1, len(MIXED)), values.slice(1, len(MIXED)))

    assert decoded(*MIXED) == columns


def test_large_binary_gives_the_same_columns() -> None:
    assert decoded(*MIXED) == decoded(*MIXED, type_=pa.large_binary())


@pytest.mark.parametrize(
    "empty",
    [pa.array([], pa.binary()), pa.array([b"x"], pa.binary()).slice(1), pa.array([], pa.large_binary())],
    ids=["binary", "sliced", "large"],
)
def test_empty_batch_gives_empty_columns_of_the_right_types(empty: pa.Array) -> None:
    columns = decode_offset_commits(empty, empty)

    types = {name: getattr(columns, name).type for name in columns.__slots__}
    assert len(columns.kind) == 0
    assert types == {
        "kind": pa.int8(),
        "record_type": pa.int16(),
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "committed_offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "commit_timestamp_ms": pa.int64(),
        "topic_id": pa.binary(),
        "reason": pa.string(),
    }


def test_batch_of_nothing_but_nulls_is_told_as_such() -> None:
    nulls = pa.nulls(3, pa.binary())

    assert kinds(decode_offset_commits(nulls, nulls)) == [Kind.NULL_KEY] * 3


def test_last_record_of_each_key_is_found_in_any_order() -> None:
    key = pa.array([b"a", b"b", None, b"a", b"c", b"b"], pa.binary())

    rows = last_per_key(key, np.array([7, 3, 9, 5, 1, 4]))

    assert rows.tolist() == [0, 4, 5]


def test_later_row_wins_between_equal_record_offsets() -> None:
    key = pa.array([b"a", b"a", b"a"], pa.binary())

    assert last_per_key(key, np.array([5, 5, 4])).tolist() == [1]


def test_last_per_key_of_a_slice_counts_rows_from_the_slice() -> None:
    key = pa.array([b"x", b"a", b"b", b"a"], pa.large_binary()).slice(1)

    assert last_per_key(key, np.array([1, 2, 3])).tolist() == [1, 2]


def test_last_per_key_of_nothing_is_nothing() -> None:
    assert last_per_key(pa.array([], pa.binary()), np.array([], np.int64)).tolist() == []
