"""Sessions of Spark on a Hive metastore, each in a process: `python -m tests.support.spark.catalog_sessions register|ask …`."""

import json
import sys

from pyspark.sql import SparkSession

from pipeline.config.model import TablesConfig
from pipeline.local.jars import resolve_for_spark
from pipeline.logs import configure
from pipeline.run.spark.catalog import register_tables
from pipeline.run.spark.session import PACKAGES, build_session

_OF_METASTORE = "spark.hadoop.hive.metastore.uris"


def register(uri: str, root: str, database: str) -> None:
    """What the job does before its stream, in its session: enter the tables. Prints the answer of a query after it."""
    configure()
    settings = {"spark.master": "local[1]", "spark.sql.catalogImplementation": "hive", _OF_METASTORE: uri}
    session = build_session(settings, jars=resolve_for_spark(PACKAGES))
    register_tables(session, TablesConfig(root=root, catalog=database))
    sys.stdout.write(f"{session.range(3).count()}\n")
    session.stop()


def ask(uri: str, database: str) -> None:
    """What somebody else does who knows Delta and the metastore, and no path. Prints rows by table, and comments."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", ":".join(map(str, resolve_for_spark(PACKAGES))))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        # By default 50 tasks read the log of each table.
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config(_OF_METASTORE, uri)
        .enableHiveSupport()
        .getOrCreate()
    )
    names = [row.tableName for row in session.sql(f"SHOW TABLES IN {database}").collect()]
    rows = {name: session.table(f"{database}.{name}").count() for name in names}
    described = session.sql(f"DESCRIBE {database}.acks").collect()
    sys.stdout.write(json.dumps({"rows": rows, "comments": {row.col_name: row.comment for row in described}}))
    session.stop()


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"register": register, "ask": ask}[what](*arguments)
