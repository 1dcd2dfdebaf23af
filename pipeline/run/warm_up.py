"""Start what Spark's tasks need before the first batch does: their Python, with all that it imports."""

import logging
import threading
from collections.abc import Iterator

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def begin(spark: SparkSession) -> threading.Thread:
    """Run a job without data beside the start of the driver, which mostly waits for Kafka and the tables then."""
    thread = threading.Thread(target=_run, args=(spark,), name="warm-up", daemon=True)
    thread.start()
    return thread


def _run(spark: SparkSession) -> None:
    try:
        spark.sparkContext.setJobDescription("start the Python of tasks")
        spark.range(1, numPartitions=1).mapInArrow(_nothing, schema="id long").toArrow()
    except (PySparkException, Py4JError, OSError) as error:
        # The first batch meets the same, and tells of it.
        log.debug("the Python of tasks could not be started ahead", extra={"error": str(error)})


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
