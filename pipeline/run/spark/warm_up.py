"""Start the Python of Spark's tasks, with all its imports, before the first batch needs it."""

import atexit
import logging
import threading
from collections.abc import Iterator

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_AWAITED_S = 30.0
"""For so long a driver that ends waits for the job. On a busy host it takes ten; without executors it never runs."""


def begin(spark: SparkSession) -> None:
    """Run a job without data while the rest of the driver starts, which mostly waits for Kafka and the tables."""
    thread = threading.Thread(target=_run, args=(spark,), name="warm-up", daemon=True)
    thread.start()
    # Spark logs an error for a task that it cannot start because it ends, after the reason why the driver ends. What is
    # registered last runs first, so this comes before PySpark ends its JVM.
    atexit.register(thread.join, _AWAITED_S)


def _run(spark: SparkSession) -> None:
    try:
        spark.sparkContext.setJobDescription("start the Python of tasks")
        spark.range(1, numPartitions=1).mapInArrow(_nothing, schema="id long").toArrow()
    except (PySparkException, Py4JError, OSError) as error:
        # The first batch fails in the same way, and reports it.
        log.debug("the Python workers of tasks could not be started in advance", extra={"error": str(error)})


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
