"""How the log offsets are asked for, without a broker."""

from dataclasses import replace

import pytest

from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, shared_out

SETTINGS = LogOffsetsSettings(
    # Port 9 is discard: nobody listens.
    properties={"bootstrap.servers": "127.0.0.1:9", "log_level": "0"},
    topics_include=("orders.*", "audit"),
    topics_exclude=("orders-test",),
    isolation="read_committed",
    request_timeout_s=0.2,
    splits=2,
)


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [("orders", True), ("orders-eu", True), ("audit", True), ("audit-eu", False), ("orders-test", False)],
)
def test_patterns_take_whole_names_and_exclusion_wins(topic: str, wanted: bool) -> None:
    assert SETTINGS.wants(topic) is wanted


def test_shares_hold_every_partition_once_and_differ_by_one() -> None:
    found = shared_out({"a": list(range(5)), "b": [0], "c": [0, 1, 2]}, 2)

    flat = [(topic, number) for share in found for topic, numbers in share.topics for number in numbers]
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
    assert [sum(len(numbers) for _, numbers in share.topics) for share in found] == [5, 4]


def test_first_share_alone_carries_the_listing_and_why_it_may_be_short() -> None:
    found = shared_out({"a": [0, 1]}, 2, error="topic b: no leader")

    assert [(share.carries_listing, share.error) for share in found] == [
        (True, "topic b: no leader"),
        (False, None),
    ]


def test_cluster_without_topics_still_has_a_share_that_says_so() -> None:
    assert [(share.topics, share.carries_listing) for share in shared_out({}, 4)] == [((), True)]


def test_broker_that_does_not_answer_gives_a_row_and_no_exception() -> None:
    rows = [row for share in shares(SETTINGS, tasks=1) for row in ask(SETTINGS, share).to_pylist()]

    assert [row["topic"] for row in rows] == [None]
    assert "topics could not be listed" in rows[0]["error"]


def test_partitions_that_nobody_answers_for_keep_their_names_and_an_error() -> None:
    (share,) = shared_out({"orders": [0, 1]}, 1)

    rows = ask(replace(SETTINGS, request_timeout_s=0.1), share).to_pylist()

    assert [(row["topic"], row["partition"], row["log_end_offset"]) for row in rows[1:]] == [
        ("orders", 0, None),
        ("orders", 1, None),
    ]
    assert all(row["error"] for row in rows[1:])
