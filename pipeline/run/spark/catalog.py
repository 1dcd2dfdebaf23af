"""The tables by name for other programs: in the catalog of the job's session, if the configuration names a database."""

import logging

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.config.model import TablesConfig
from pipeline.tables.catalog import register
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import path_of

log = logging.getLogger(__name__)


def register_tables(spark: SparkSession, config: TablesConfig) -> None:
    """Register the tables, which exist, in `tables.catalog`; nothing without it.

    Lag and plans do not need the catalog: an unavailable metastore is reported and not waited for.

    Raises:
        ConfigError: A table of that name exists at another location.
    """
    database = config.catalog
    if not database:
        return
    try:
        new = register(spark, database, ((table.name, path_of(config.root, table.name)) for table in TABLES))
    except (PySparkException, Py4JError) as error:
        log.error(  # noqa: TRY400 - the trace is the JVM's
            "the tables could not be registered in the catalog; the stream continues, and its next start retries",
            extra={"database": database, "error": next(iter(str(error).splitlines()), "")},
        )
        return
    log.info(
        "the tables are registered in the catalog",
        extra={"database": database, "new": list(new)},
    )
