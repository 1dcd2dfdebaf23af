"""Records of KIP-848 groups to rows, and what cannot be read to quarantine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.protocol.kafka.consumer_group import (
    encode_current_assignment,
    encode_member_metadata,
    encode_regular_expression,
    encode_target_assignment,
)
from assignor.protocol.kafka.record_types import RecordType
from pipeline.decode.groups import GroupRows, group_rows
from pipeline.decode.rows import rows_of
from tests.support.bytes_strategies import damaged
from tests.support.groups.consumer_group_records import (
    Written,
    current,
    epoch,
    gone,
    key,
    metadata,
    raw,
    regex,
    target,
    target_epoch,
)
from tests.support.groups.consumer_group_values import (
    assignments,
    current_assignments,
    member_metadata,
    regular_expressions,
)
from tests.support.job.frames import NOW_MS

ONE_OF_EACH = (
    epoch(4),
    metadata("m", "t"),
    target_epoch(4),
    target("m", {"t": [0]}),
    current("m", 4, {"t": [0]}),
    regex("t.*", "t"),
)
VALUES = {
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: member_metadata.map(encode_member_metadata),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: assignments.map(encode_target_assignment),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: current_assignments.map(encode_current_assignment),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: regular_expressions.map(encode_regular_expression),
}
YEAR_33658_MS = 10**15


def read(*records: Written, at_ms: int = NOW_MS) -> GroupRows:
    return group_rows(raw(*records, at_ms=at_ms), lambda _group: True)


def test_each_record_leaves_the_worker_as_it_was_written() -> None:
    found = read(*ONE_OF_EACH)

    rows = sorted(found.good, key=lambda row: row["position"])
    assert [(row["record_type"], row["record_key"]) for row in rows] == [
        (3, ""),
        (5, "m"),
        (6, ""),
        (7, "m"),
        (8, "m"),
        (16, "t.*"),
    ]
    assert [row["value"] for row in rows] == [value for _, value in ONE_OF_EACH]
    assert [row["written_at_ms"] - NOW_MS for row in rows] == [0, 1000, 2000, 3000, 4000, 5000]
    assert {row["row_kind"] for row in rows} == {"group_record"}
    assert found.bad == []


def test_tombstone_of_each_record_leaves_as_one_and_the_record_before_is_not_looked_into() -> None:
    found = read(*ONE_OF_EACH, *map(gone, ONE_OF_EACH))

    assert {row["row_kind"] for row in found.good} == {"group_record_tombstone"}
    assert (len(found.good), found.superseded, found.bad) == (6, 6, [])


def test_newest_record_of_each_member_leaves_the_worker() -> None:
    found = read(current("a", 1), current("b", 1), current("a", 2))

    assert sorted((row["record_key"], row["position"]) for row in found.good) == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("record", ONE_OF_EACH, ids=lambda record: str(record[0][1]))
def test_unknown_version_is_in_quarantine_and_says_that_nothing_is_known(record: Written) -> None:
    found = read(record, (record[0], b"\x00\x07new"))

    (row,), (bad,) = found.good, found.bad
    assert (row["value"], row["error"]) == (None, "unknown version 7 (at byte 0)")
    assert (bad["reason"], bad["value"]) == ("unknown version 7 (at byte 0)", b"\x00\x07new")
    assert bad["kind"] == RecordType(row["record_type"]).name.lower()


def test_key_that_names_no_member_is_in_quarantine_alone() -> None:
    whole = key(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "member")

    found = read((whole[:-2], b"\x00\x00"), (whole[:-2], None))

    assert found.good == []
    assert len(found.bad) == 2
    assert {bad["kind"] for bad in found.bad} == {"consumer_group_current_member_assignment"}


def test_record_of_a_time_that_is_none_has_none() -> None:
    (row,) = read(epoch(1), at_ms=YEAR_33658_MS).good

    assert row["written_at_ms"] is None


@pytest.mark.parametrize("record_type", VALUES, ids=lambda record_type: record_type.name)
@given(data=st.data())
def test_damaged_record_is_a_row_or_has_a_reason_in_quarantine(
    record_type: RecordType, data: st.DataObject
) -> None:
    written_key = data.draw(st.just(key(record_type, "m")) | damaged(st.just(key(record_type, "m"))))
    value = data.draw(damaged(VALUES[record_type]) | st.binary(max_size=40))
    # `step` lets no other type come here.
    written_key = record_type.to_bytes(2, "big") + written_key[2:]

    found = read((written_key, value))

    assert len(found.good) + len(found.bad) in (1, 2)
    assert all(bad["reason"] for bad in found.bad)
    for row in found.good:
        assert (row["value"] == value) == (row["error"] is None)
        assert (row["error"] is None) == (not found.bad)
    if found.good:
        assert rows_of(found.good).num_rows == 1


def test_groups_that_are_not_wanted_leave_nothing() -> None:
    found = group_rows(
        raw(*ONE_OF_EACH, (key(RecordType.CONSUMER_GROUP_METADATA), b"")), lambda _group: False
    )

    assert (found.good, found.bad) == ([], [])
