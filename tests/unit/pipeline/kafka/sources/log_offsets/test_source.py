"""How the log offsets are asked for, without a broker."""

from dataclasses import replace

import pytest

from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, slices
from pipeline.kafka.sources.log_offsets.source import LogOffsetsReader

SETTINGS = LogOffsetsSettings(
    # Port 9 is discard: nobody listens.
    properties={"bootstrap.servers": "127.0.0.1:9", "log_level": "0"},
    topics_include=("orders.*", "audit"),
    topics_exclude=("orders-test",),
    isolation="read_committed",
    request_timeout_s=0.2,
    splits=2,
)


def test_settings_survive_their_trip_to_the_executors() -> None:
    assert LogOffsetsSettings.from_json(SETTINGS.to_json()) == SETTINGS


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [("orders", True), ("orders-eu", True), ("audit", True), ("audit-eu", False), ("orders-test", False)],
)
def test_patterns_take_whole_names_and_exclusion_wins(topic: str, wanted: bool) -> None:
    assert SETTINGS.wants(topic) is wanted


def test_shares_hold_every_partition_once_and_differ_by_one() -> None:
    shares = slices({"a": list(range(5)), "b": [0], "c": [0, 1, 2]}, 2)

    flat = [(topic, number) for share in shares for topic, numbers in share.topics for number in numbers]
    assert sorted(flat) == [
        ("a", 0),
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("a", 4),
        ("b", 0),
        ("c", 0),
        ("c", 1),
        ("c", 2),
    ]
    assert [sum(len(numbers) for _, numbers in share.topics) for share in shares] == [5, 4]
    assert [share.carries_listing for share in shares] == [True, False]


def test_cluster_without_topics_still_has_a_share_that_says_so() -> None:
    assert [(share.topics, share.carries_listing) for share in slices({}, 4)] == [([], True)]


def test_broker_that_does_not_answer_gives_a_row_and_no_exception() -> None:
    reader = LogOffsetsReader(SETTINGS)

    shares = reader.partitions({"tick": 0}, {"tick": 1})
    rows = [row for share in shares for batch in reader.read(share) for row in batch.to_pylist()]

    assert [row["topic"] for row in rows] == [None]
    assert "topics could not be listed" in rows[0]["error"]


def test_partitions_that_nobody_answers_for_keep_their_names_and_an_error() -> None:
    reader = LogOffsetsReader(replace(SETTINGS, request_timeout_s=0.1))
    share = slices({"orders": [0, 1]}, 1)[0]

    rows = [row for batch in reader.read(share) for row in batch.to_pylist()]

    assert [(row["topic"], row["partition"], row["log_end_offset"]) for row in rows[1:]] == [
        ("orders", 0, None),
        ("orders", 1, None),
    ]
    assert all(row["error"] for row in rows[1:])


def test_every_tick_is_later_than_the_start() -> None:
    reader = LogOffsetsReader(SETTINGS)

    assert reader.latestOffset()["tick"] > reader.initialOffset()["tick"]
