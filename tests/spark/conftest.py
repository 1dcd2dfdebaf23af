"""One local Spark session for all tests of this folder."""

import os
import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session

# `collect` answers in the machine's own time zone.
os.environ["TZ"] = "UTC"
time.tzset()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = resolve_for_spark(PACKAGES)
    session = build_session({"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "1"}, jars=jars)
    yield session
    session.stop()
