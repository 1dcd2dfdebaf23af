"""Bytes to rows, through Spark."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from assignor.protocol.consumer import Assignment, Subscription, encode_assignment, encode_subscription
from assignor.protocol.group_metadata import GroupMember, GroupMetadata, encode_group_metadata
from assignor.protocol.offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from pipeline.decode import Filters, decode, summarise
from pipeline.decode_talk import TalkTopics
from pipeline.source import OFFSETS_TOPIC
from tests.support.frames import at, picked

TALK = TalkTopics(cluster="local", acks="lagwise.acks", commands="lagwise.commands")
ALL = Filters(topics_include=(".*",), topics_exclude=(), groups_include=(".*",), groups_exclude=(), talk=TALK)
_SOURCE = (
    "kind string, topic string, partition int, offset long, timestamp timestamp, key binary, value binary, "
    "log_start_offset long, log_end_offset long, isolation string, observed_at_ms long, error string"
)


def key(group: str = "g", topic: str = "t", partition: int = 0) -> bytes:
    return encode_offset_commit_key(OffsetCommitKey(group_id=group, topic=topic, partition=partition))


def value(offset: int) -> bytes:
    return encode_offset_commit_value(
        OffsetCommitValue(committed_offset=offset, leader_epoch=2, commit_timestamp_ms=1_000)
    )


def records(spark: SparkSession, *pairs: tuple[bytes, bytes | None]) -> DataFrame:
    rows: Sequence[tuple[Any, ...]] = [
        ("record", OFFSETS_TOPIC, 3, position, at(0), *pair, *[None] * 5)
        for position, pair in enumerate(pairs)
    ]
    # One task, as one partition of the offsets topic is.
    return spark.createDataFrame(rows, _SOURCE).repartition(1)


def test_newest_commit_of_each_partition_leaves_the_worker(spark: SparkSession) -> None:
    rows = decode(records(spark, (key(), value(1)), (key(partition=1), value(5)), (key(), value(2))), ALL)

    assert picked(
        rows.where("row_kind = 'commit'"),
        "group_id",
        "topic",
        "partition",
        "committed_offset",
        "position",
        "leader_epoch",
    ) == [("g", "t", 0, 2, 2, 2), ("g", "t", 1, 5, 1, 2)]
    assert summarise(rows).counts["commit"] == 3


def test_tombstone_after_a_commit_leaves_as_the_tombstone(spark: SparkSession) -> None:
    rows = decode(records(spark, (key(), value(1)), (key(), None)), ALL)

    assert picked(rows.where("position is not null"), "row_kind", "position") == [("tombstone", 1)]


def test_bad_record_does_not_hide_the_good_one_before_it(spark: SparkSession) -> None:
    rows = decode(records(spark, (key(), value(1)), (key(), value(2)[:5])), ALL)

    assert picked(rows.where("row_kind = 'commit'"), "committed_offset") == [(1,)]
    assert picked(rows.where("row_kind = 'bad'"), "topic", "partition", "offset", "kind") == [
        (OFFSETS_TOPIC, 3, 1, "offset_commit")
    ]


def test_nothing_is_dropped_without_a_quarantine_row_or_a_counter(spark: SparkSession) -> None:
    share, unknown, metadata = b"\x00\x0a\x00\x01g\x00\x01m", b"\x00\x63rest", encode_group_metadata_key("g")
    rows = decode(
        records(spark, (share, b"x"), (unknown, b"y"), (metadata, b"\x00\x03\xff"), (b"\x00", b"z")), ALL
    )

    summary = summarise(rows)

    assert summary.counts["share_group_member_metadata"] == 1
    assert summary.counts["unknown_type_99"] == 1
    assert summary.quarantined == 3
    assert picked(rows.where("row_kind = 'bad'"), "offset", "kind", "key") == [
        (1, "unknown_type", bytearray(unknown)),
        (2, "group_metadata", bytearray(metadata)),
        (3, "offset_commit", bytearray(b"\x00")),
    ]


def test_filtered_groups_and_topics_leave_no_row(spark: SparkSession) -> None:
    filters = replace(ALL, topics_include=("t.*",), topics_exclude=("tx",), groups_exclude=("own-.*",))
    pairs = [(key(g, t), value(1)) for g, t in (("g", "t"), ("own-1", "t"), ("g", "tx"), ("g", "other"))]

    assert picked(
        decode(records(spark, *pairs), filters).where("row_kind = 'commit'"), "group_id", "topic"
    ) == [("g", "t")]


def test_group_with_a_line_break_in_its_name_is_decoded(spark: SparkSession) -> None:
    record = (encode_group_metadata_key("two\nlines"), metadata(b""))

    decoded = decode(records(spark, (key("two\nlines"), value(1)), record), ALL)

    kept = decoded.where("row_kind in ('commit', 'group')")
    assert picked(kept, "row_kind", "group_id") == [("commit", "two\nlines"), ("group", "two\nlines")]


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


def test_group_record_gives_members_with_subscription_and_assignment(spark: SparkSession) -> None:
    record = (encode_group_metadata_key("g"), metadata(encode_subscription(Subscription(topics=("t", "u")))))

    row = decode(records(spark, record), ALL).where("row_kind = 'group'").collect()[0]

    assert (row.group_type, row.state, row.assignor, row.rebalance_protocol, row.generation) == (
        "classic",
        "Stable",
        "range",
        "eager",
        7,
    )
    assert (row.members[0].member_id, row.members[0].topics, row.members[0].assigned) == (
        "m",
        ["t", "u"],
        {"t": [0, 2]},
    )


def test_superseded_group_records_are_counted(spark: SparkSession) -> None:
    record = encode_group_metadata_key("g")
    rows = decode(records(spark, *((record, metadata(b"")) for _ in range(5)), (record, None)), ALL)

    summary = summarise(rows)

    assert (summary.group_records, summary.counts["group_superseded"]) == (1, 5)
    assert picked(rows.where("group_id = 'g'"), "row_kind", "position") == [("group_tombstone", 5)]


def test_unreadable_subscription_keeps_the_group_and_quarantines_the_bytes(spark: SparkSession) -> None:
    rows = decode(records(spark, (encode_group_metadata_key("g"), metadata(b"\x00\x03\x00"))), ALL)

    assert rows.where("row_kind = 'group'").collect()[0].members[0].error
    assert "member m" in rows.where("row_kind = 'bad'").collect()[0].reason


def test_log_offsets_pass_through_and_the_listing_is_told_apart(spark: SparkSession) -> None:
    nothing = [None] * 4
    rows = spark.createDataFrame(
        [
            ("log_offset", "t", 0, *nothing, 5, 9, "read_committed", 77, None),
            ("log_offset", None, None, *nothing, None, None, "read_committed", 77, "no broker"),
        ],
        _SOURCE,
    )

    decoded = decode(rows, ALL)

    assert picked(
        decoded.where("row_kind = 'log_offset'"), "topic", "log_start_offset", "log_end_offset"
    ) == [("t", 5, 9)]
    assert (summarise(decoded).is_listed, summarise(decoded).listing_error) == (True, "no broker")


def test_log_offsets_of_the_offsets_topic_are_no_records(spark: SparkSession) -> None:
    row = ("log_offset", OFFSETS_TOPIC, 0, *[None] * 4, 5, 9, "read_committed", 77, None)

    decoded = decode(spark.createDataFrame([row], _SOURCE), ALL)

    assert picked(decoded, "row_kind", "topic", "log_end_offset") == [("log_offset", OFFSETS_TOPIC, 9)]
