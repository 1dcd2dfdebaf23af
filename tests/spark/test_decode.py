"""What Spark does with decoded rows; what is in them: `tests/unit/pipeline/decode/test_step.py`."""

from pyspark.sql import SparkSession

from pipeline.decode.step import Reached, log_offset_rows, summarise
from pipeline.kafka.positions import Position
from pipeline.kafka.sources.log_offsets.source import SCHEMA
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from tests.support.frames import decoded, picked


def test_log_offsets_pass_through_and_the_listing_is_told_apart(spark: SparkSession) -> None:
    rows = [
        (OFFSETS_TOPIC, None, 0, 5, 9, "read_committed", 77, None),
        (None, None, None, None, None, "read_committed", 77, "no broker"),
    ]

    found = log_offset_rows(spark.createDataFrame(rows, SCHEMA))

    assert picked(found, "row_kind", "topic", "log_start_offset", "log_end_offset", "error") == [
        ("listing", None, None, None, "no broker"),
        ("log_offset", OFFSETS_TOPIC, 5, 9, None),
    ]
    assert (summarise(found).is_listed, summarise(found).listing_error) == (True, "no broker")


def test_summary_adds_up_what_the_workers_counted_and_says_how_far_they_read(spark: SparkSession) -> None:
    read = {"row_kind": "read", "topic": OFFSETS_TOPIC, "position": 12, "leader_epoch": 3}
    rows = decoded(
        spark,
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
