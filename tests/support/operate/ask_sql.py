"""`lagwise sql` within a test's own process and Spark session, whose catalog is left as it was found."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from pipeline.tables.schemas import TABLES


@contextmanager
def own_catalog(spark: SparkSession) -> Iterator[None]:
    """The names of lagwise's tables mean nothing in the session, before and after."""
    _forget(spark)
    yield
    _forget(spark)


def _forget(spark: SparkSession) -> None:
    for table in TABLES:
        spark.catalog.dropTempView(table.name)
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")
