"""The tables by name in a catalog of Spark, of a metastore or of a single session.

An entry is external: it holds the name and the location, and Delta's log has columns, comments and rows. Creating an
entry commits nothing to the table, and dropping it deletes no data.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from pipeline.errors import ConfigError


def register(spark: SparkSession, database: str, places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Register tables in `database`, which is created if missing; return the names of new entries.

    An entry of the same name is left as it is.

    Args:
        spark: Session with the catalog.
        database: The catalog chooses the folder of a new one. In the folder of the tables,
            `DROP DATABASE … CASCADE` would delete them.
        places: Name and path or URL of each table; it exists.

    Raises:
        ConfigError: A table or view of that name exists at another location, or Spark finds no table at a place.
            Nothing was registered, unless another process did so at the same moment.
        PySparkException: The catalog refuses.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the rules for places are Hadoop's
    wanted = {name: _qualified(spark, jvm.org.apache.hadoop.fs.Path(path)) for name, path in places}
    for place in wanted.values():
        if not _has_log(spark, jvm.org.apache.hadoop.fs.Path(place, "_delta_log")):
            raise ConfigError(
                f"tables.catalog: there is no table at {place}, where Spark would create an empty one; point "
                "tables.root at a path of letters, digits, dots, dashes and underscores"
            )
    spark.sql(f"CREATE DATABASE IF NOT EXISTS `{database}`")
    new = tuple(name for name, place in wanted.items() if not _is_there(spark, database, name, place))
    for name in new:
        place = wanted[name].replace("\\", "\\\\").replace("'", "\\'")
        # Another driver may be as far as this one. IF NOT EXISTS would hide that its table lies elsewhere.
        spark.sql(f"CREATE TABLE IF NOT EXISTS `{database}`.`{name}` USING DELTA LOCATION '{place}'")
        _is_there(spark, database, name, wanted[name])
    return new


def _is_there(spark: SparkSession, database: str, name: str, place: str) -> bool:
    """Whether the catalog has the table.

    Raises:
        ConfigError: It has another one of that name.
    """
    catalog = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001 - the public one hides where a table lies
    jvm: Any = spark._jvm  # noqa: SLF001 - as above
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Option.apply(database))
    if not catalog.tableExists(identifier):
        return False
    location = catalog.getTableMetadata(identifier).storage().locationUri()
    # By its URI, in which a space is %20; of a text the path would take that as it stands.
    lies_at = jvm.org.apache.hadoop.fs.Path(location.get()) if location.isDefined() else None
    present = None if lies_at is None else _qualified(spark, lies_at)
    if present != place:
        where = "is a view" if present is None else f"is at {present}"
        raise ConfigError(
            f"tables.catalog: {database}.{name} {where}, but lagwise's table is at {place}; name another database, "
            "or drop that entry if it is not needed"
        )
    return True


def _has_log(spark: SparkSession, place: Any) -> bool:
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - with the store's settings
    return bool(place.getFileSystem(conf).exists(place))


def _qualified(spark: SparkSession, place: Any) -> str:
    """One text for one place, whichever of its texts Hadoop's path was made of: with scheme and from the root."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - with the store's settings
    return str(place.getFileSystem(conf).makeQualified(place).toString())
