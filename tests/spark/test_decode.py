"""What Spark does with decoded rows; what is in them: `tests/unit/pipeline/decode/test_step.py`."""

from pyspark.sql import SparkSession

from pipeline.decode.step import log_offset_rows, summarise
from pipeline.kafka.sources.log_offsets.source import SCHEMA
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from tests.support.frames import picked


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
    summary = summarise(found.toArrow())
    assert (summary.is_listed, summary.listing_error) == (True, "no broker")
