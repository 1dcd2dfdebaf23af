"""Stored log offsets beside those that the brokers have answered."""

from pipeline.fold.missing_topics import missing_topics
from tests.support.job.frames import arrow, at, decoded_arrow


def test_topics_with_a_partition_that_was_not_observed_are_missing() -> None:
    stored = [
        {"topic": "whole"},
        {"topic": "shrunk"},
        {"topic": "shrunk", "partition": 1},
        {"topic": "gone"},
        {"topic": "known to be gone", "deleted_at": at(-60)},
    ]
    seen = [
        {"row_kind": "log_offset", "topic": topic, "partition": 0} for topic in ("whole", "shrunk", "new")
    ]

    assert missing_topics(arrow("topic_offsets", *stored), decoded_arrow(*seen)) == [
        "gone",
        "shrunk",
    ]
