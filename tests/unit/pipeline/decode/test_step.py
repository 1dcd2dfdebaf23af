"""Bytes to rows."""

from dataclasses import replace

import pyarrow as pa

from assignor.protocol.kafka.consumer import Assignment, Subscription, encode_assignment, encode_subscription
from assignor.protocol.kafka.group_metadata import GroupMember, GroupMetadata, encode_group_metadata
from assignor.protocol.kafka.offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from pipeline.decode.filters import Filters
from pipeline.decode.rows import log_offset_rows
from pipeline.kafka.positions import Position
from pipeline.kafka.sources.log_offsets.ask import LOG_OFFSETS
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source.summary import Reached, summarise
from tests.support.brokers.raw_records import Decoded, Pair, raw
from tests.support.brokers.raw_records import decoded as decoded_by
from tests.support.job.batches import FILTERS
from tests.support.job.frames import decoded_arrow


def key(group: str = "g", topic: str = "t", partition: int = 0) -> bytes:
    return encode_offset_commit_key(OffsetCommitKey(group_id=group, topic=topic, partition=partition))


def value(offset: int) -> bytes:
    return encode_offset_commit_value(
        OffsetCommitValue(committed_offset=offset, leader_epoch=2, commit_timestamp_ms=1_000)
    )


def decoded(*pairs: Pair, filters: Filters = FILTERS) -> Decoded:
    return decoded_by(raw(*pairs), filters)


def metadata(subscription: bytes) -> bytes:
    member = GroupMember(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout_ms=1,
        subscription=subscription,
        assignment=encode_assignment(Assignment(partitions={"t": (0, 2)})),
    )
    group = GroupMetadata(
        protocol_type="consumer", generation=7, protocol="range", leader="m", members=(member,)
    )
    return encode_group_metadata(group)


def test_newest_commit_of_each_partition_leaves_the_worker() -> None:
    found = decoded((key(), value(1)), (key(partition=1), value(5)), (key(), value(2)))

    assert found.picked(
        "commit", "group_id", "topic", "partition", "committed_offset", "position", "leader_epoch"
    ) == [("g", "t", 0, 2, 2, 2), ("g", "t", 1, 5, 1, 2)]
    assert found.counts["commit"] == 3


def test_commit_says_the_id_of_its_topic_as_kafka_writes_it() -> None:
    named = OffsetCommitValue(committed_offset=1, commit_timestamp_ms=1, topic_id=bytes(range(240, 256)))

    found = decoded((key(), encode_offset_commit_value(named)), (key(partition=1), value(5)))

    assert found.picked("commit", "partition", "topic_id") == [(0, "8PHy8_T19vf4-fr7_P3-_w"), (1, None)]


def test_tombstone_after_a_commit_leaves_as_the_tombstone() -> None:
    found = decoded((key(), value(1)), (key(), None))

    assert found.of("commit") == []
    assert found.picked("tombstone", "position", "offsets_partition") == [(1, 3)]


def test_bad_record_does_not_hide_the_good_one_before_it() -> None:
    found = decoded((key(), value(1)), (key(), value(2)[:5]))

    assert found.picked("commit", "committed_offset") == [(1,)]
    assert found.picked("bad", "topic", "partition", "offset", "kind") == [
        (OFFSETS_TOPIC, 3, 1, "offset_commit")
    ]


def test_nothing_is_dropped_without_a_quarantine_row_or_a_counter() -> None:
    share, unknown, group = b"\x00\x0a\x00\x01g\x00\x01m", b"\x00\x63rest", encode_group_metadata_key("g")

    found = decoded((share, b"x"), (unknown, b"y"), (group, b"\x00\x03\xff"), (b"\x00", b"z"), (None, b"k"))

    assert found.counts["share_group_member_metadata"] == 1
    assert found.counts["unknown_type_99"] == 1
    assert found.counts["null_key"] == 1
    assert found.counts["bad"] == 3
    assert found.picked("bad", "offset", "kind", "key") == [
        (1, "unknown_type", unknown),
        (2, "group_metadata", group),
        (3, "offset_commit", b"\x00"),
    ]


def test_filtered_groups_and_topics_leave_no_row() -> None:
    filters = replace(FILTERS, topics_include=("t.*",), topics_exclude=("tx",), groups_exclude=("own-.*",))
    pairs = [(key(g, t), value(1)) for g, t in (("g", "t"), ("own-1", "t"), ("g", "tx"), ("g", "other"))]

    assert decoded(*pairs, filters=filters).picked("commit", "group_id", "topic") == [("g", "t")]


def test_group_with_a_line_break_in_its_name_is_decoded() -> None:
    group = "two\nlines"

    found = decoded((key(group), value(1)), (encode_group_metadata_key(group), metadata(b"")))

    assert found.picked("commit", "group_id") == found.picked("group", "group_id") == [(group,)]


def test_group_record_gives_members_with_subscription_and_assignment() -> None:
    record = (encode_group_metadata_key("g"), metadata(encode_subscription(Subscription(topics=("t", "u")))))

    (row,) = decoded(record).of("group")

    names = ("group_type", "state", "assignor", "rebalance_protocol", "generation")
    assert [row[name] for name in names] == ["classic", "Stable", "range", "eager", 7]
    (member,) = row["members"]
    assert (member["member_id"], member["topics"], member["assigned"]) == ("m", ["t", "u"], [("t", [0, 2])])


def test_superseded_group_records_are_counted_and_not_decoded() -> None:
    record = encode_group_metadata_key("g")

    found = decoded(*((record, metadata(b"")) for _ in range(5)), (record, None))

    assert (found.counts["group"], found.counts["group_superseded"]) == (1, 5)
    assert found.picked("group_tombstone", "group_id", "position") == [("g", 5)]


def test_unreadable_subscription_keeps_the_group_and_quarantines_the_bytes() -> None:
    found = decoded((encode_group_metadata_key("g"), metadata(b"\x00\x03\x00")))

    assert found.of("group")[0]["members"][0]["error"]
    assert "member m" in found.of("bad")[0]["reason"]


def test_decoder_that_has_seen_nothing_counts_nothing() -> None:
    assert decoded().rows == []


def test_identity_of_filters_is_the_one_that_tables_of_earlier_versions_hold() -> None:
    assert FILTERS.identity == "7e4040c091ad83c3"


def test_filters_are_the_same_only_if_all_of_them_are() -> None:
    others = [
        replace(FILTERS, topics_include=("t",)),
        replace(FILTERS, topics_exclude=("t",)),
        replace(FILTERS, groups_include=("g",)),
        replace(FILTERS, groups_exclude=("g",)),
        replace(FILTERS, control_topics=replace(FILTERS.control_topics, cluster="other")),
        replace(FILTERS, control_topics=replace(FILTERS.control_topics, acks="other")),
        replace(FILTERS, control_topics=replace(FILTERS.control_topics, commands="other")),
        replace(FILTERS, control_topics=replace(FILTERS.control_topics, acks_by_prefix={"a-": "a.acks"})),
        replace(FILTERS, control_topics=replace(FILTERS.control_topics, acks_by_prefix={"a-": "b.acks"})),
    ]

    assert replace(FILTERS).identity == FILTERS.identity
    assert len({one.identity for one in (FILTERS, *others)}) == 1 + len(others)


def test_summary_adds_up_what_the_workers_counted_and_says_how_far_they_read() -> None:
    read = {"row_kind": "read", "topic": OFFSETS_TOPIC, "position": 12, "leader_epoch": 3}
    rows = decoded_arrow(
        {"row_kind": "count", "kind": "commit", "count": 2},
        {"row_kind": "count", "kind": "commit", "count": 3},
        {"row_kind": "count", "kind": "bad", "count": 1},
        {"row_kind": "commit", "position": 11},
        read | {"partition": 0},
        read | {"partition": 1, "error": "its leader does not answer"},
    )

    summary = summarise(rows)

    assert summary.counts == {"bad": 1, "commit": 5}
    assert summary.reached == {
        (OFFSETS_TOPIC, 0): Reached(Position(12, 3), None),
        (OFFSETS_TOPIC, 1): Reached(Position(12, 3), "its leader does not answer"),
    }
    assert not summary.is_listed


def test_log_offsets_pass_through_and_the_listing_is_told_apart() -> None:
    asked = {"isolation": "read_committed", "observed_at_ms": 77}
    offsets = {"topic": OFFSETS_TOPIC, "partition": 0, "log_start_offset": 5, "log_end_offset": 9}
    answers = pa.RecordBatch.from_pylist([asked | offsets, asked | {"error": "no broker"}], LOG_OFFSETS)

    found = pa.Table.from_batches([log_offset_rows(answers)])

    names = ["row_kind", "topic", "log_start_offset", "log_end_offset", "observed_at_ms", "error"]
    assert [tuple(row.values()) for row in found.select(names).to_pylist()] == [
        ("log_offset", OFFSETS_TOPIC, 5, 9, 77, None),
        ("listing", None, None, None, 77, "no broker"),
    ]
    summary = summarise(found)
    assert (summary.is_listed, summary.listing_error) == (True, "no broker")
