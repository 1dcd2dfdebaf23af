"""Store: the Delta tables, who may write them, and which batch each of them holds.

Every write is one Delta commit that carries two things in the commit itself:

- a transaction `("lagwise", term * 2**32 + batch_id + 2)`: Delta skips the write, inside its own commit
  protocol, when the table has seen the same or a higher number. A driver whose term is over can therefore not
  write, whatever it believes, and a batch that runs twice under one term writes once;
- a stamp in the commit's user metadata (`Stamp`): which batch of which checkpoint it was, and that batch's
  clock. A restarted driver reads it to see how far the batch that is being replayed had come.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import deltalake as delta_rs
from delta.exceptions import ConcurrentTransactionException
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from pipeline.errors import StoreError
from pipeline.schemas import TABLES, Table
from pipeline.stamp import Stamp

log = logging.getLogger(__name__)

_APP = "lagwise"
_TERM = 2**32
_BY_NAME = {table.name: table for table in TABLES}

# A stamp is looked for among so many of a table's newest commits first: reading the whole log takes a second for each
# thousand. Upkeep and every start add commits without one.
_STAMP_SEARCH_COMMITS = 50

_ATTEMPTS = 10


class Store:
    """The tables under one root, written by one driver under one term."""

    def __init__(self, spark: SparkSession, root: str, *, term: int) -> None:
        """Open the tables; `create_tables` must have run."""
        self.spark = spark
        self.root = root
        self.term = term

    def path(self, name: str) -> str:
        """Folder of a table."""
        return path_of(self.root, name)

    def read(self, name: str) -> DataFrame:
        """The newest version of a table, its columns in the order of its schema.

        A column that only a later version of lagwise knows is left out.
        """
        stored = self.spark.read.format("delta").load(self.path(name))
        return stored.select(*_BY_NAME[name].schema.fieldNames())

    def write(self, name: str, rows: DataFrame, stamp: Stamp) -> None:
        """Overwrite a latest table, or append to an append table, with `rows` and the batch's stamp.

        Columns are taken by name, in the order of the table's schema. Nothing happens when the table already
        holds this batch under this term, or when another driver has taken over.
        """
        table = _BY_NAME[name]
        self._save(
            name,
            rows.select(*table.schema.fieldNames())
            .write.mode("overwrite" if table.is_latest else "append")
            .option("userMetadata", stamp.to_json()),
            number=stamp.batch_id + 2,
        )

    def restamp(self, name: str, stamp: Stamp) -> None:
        """Give a table another stamp, without a row."""
        rows = self.read(name).limit(0).write.mode("append").option("userMetadata", stamp.to_json())
        self._save(name, rows, number=1)

    def touch(self) -> None:
        """Make the term known to every table, so that writes of earlier terms are skipped from now on."""
        for table in TABLES:
            self._save(table.name, self.read(table.name).limit(0).write.mode("append"), number=0)

    def _save(self, name: str, writer: DataFrameWriter, *, number: int) -> None:
        version = str(self.term * _TERM + number)
        writer = writer.format("delta").option("txnAppId", _APP).option("txnVersion", version)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                writer.save(self.path(name))
            except ConcurrentTransactionException:
                # Another driver has committed meanwhile. The next attempt sees that: Delta skips it if the other
                # term is newer, and it goes through if it is older.
                if attempt == _ATTEMPTS:
                    raise
                log.info("another driver writes too", extra={"table": name, "attempt": attempt})
            else:
                return

    def highest_term(self, storage_options: Mapping[str, str]) -> int:
        """The highest term that any table has seen: `planner_state` itself may be lost, or restored from a copy."""
        handles = (
            delta_rs.DeltaTable(self.path(table.name), storage_options=dict(storage_options) or None)
            for table in TABLES
        )
        return max((handle.transaction_version(_APP) or 0) // _TERM for handle in handles)

    def stamp(self, name: str) -> Stamp | None:
        """The newest stamp in a table's log, or null when no batch has written it yet.

        Upkeep cuts the log after its retention, and the stamp with it where nothing was written since.
        """
        found = self._newest_metadata(name, _STAMP_SEARCH_COMMITS) or self._newest_metadata(name, None)
        if found is None:
            return None
        return Stamp.from_json(found)

    def versions(self, names: Iterable[str]) -> dict[str, int]:
        """Version of each of these tables; it never goes down, unless a table is lost or restored."""
        return {name: self._version(name) for name in names}

    def _version(self, name: str) -> int:
        newest = DeltaTable.forPath(self.spark, self.path(name)).history(1).select("version").collect()
        return int(newest[0]["version"])

    def _newest_metadata(self, name: str, commits: int | None) -> str | None:
        table = DeltaTable.forPath(self.spark, self.path(name))
        found = (
            (table.history() if commits is None else table.history(commits))
            .select("version", "userMetadata")
            .where("userMetadata is not null")
            .orderBy("version", ascending=False)
            .limit(1)
            .collect()
        )
        return found[0]["userMetadata"] if found else None


def path_of(root: str, name: str) -> str:
    """Folder of the table `name` under `root`; a relative one starts at the working directory."""
    # Delta takes a relative location for the name of a table.
    base = root.rstrip("/") if "://" in root else Path(root).absolute()
    return f"{base}/{name}"


def create_tables(spark: SparkSession, root: str, retention_hours: float) -> None:
    """Create what is missing, tables and columns that may be null, and bring retention up to date.

    Args:
        spark: Session to work in.
        root: Folder of the tables.
        retention_hours: How long replaced files and the table log stay; longer than any reader runs.

    Raises:
        StoreError: A table exists whose columns do not fit those that this version writes.
    """
    for table in TABLES:
        path = path_of(root, table.name)
        if DeltaTable.isDeltaTable(spark, path):
            _fit(spark, table, path)
            _alter(spark, path, _properties(table, retention_hours))
        else:
            _create(spark, table, path, retention_hours)


def _create(spark: SparkSession, table: Table, path: str, retention_hours: float) -> None:
    builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(table.schema)
    if table.partition_by:
        builder = builder.partitionedBy(*table.partition_by)
    for key, value in _properties(table, retention_hours).items():
        builder = builder.property(key, value)
    builder.execute()


def _properties(table: Table, retention_hours: float) -> dict[str, str]:
    minutes = max(1, round(retention_hours * 60))
    common = {
        "delta.enableDeletionVectors": "false",
        # Replaced files are of use only to a reader that is still at an older version.
        "delta.deletedFileRetentionDuration": f"interval {minutes} minutes",
        "delta.logRetentionDuration": f"interval {minutes} minutes",
    }
    # A commit every few seconds: a checkpoint at every tenth would be written a thousand times a day.
    return common | ({"delta.checkpointInterval": "25"} if table.is_latest else {})


def _alter(spark: SparkSession, path: str, wanted: dict[str, str]) -> None:
    present = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()}
    changed = {key: value for key, value in wanted.items() if present.get(key) != value}
    if changed:
        settings = ", ".join(f"'{key}' = '{value}'" for key, value in sorted(changed.items()))
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({settings})")


def _fit(spark: SparkSession, table: Table, path: str) -> None:
    """Add the columns that later versions have brought; what else differs is an error.

    A column more than this version knows stays, null in rows to come. Writes go by name: the order is free.
    """
    present = {field.name: field for field in spark.read.format("delta").load(path).schema}
    new = [field for field in table.schema if field.name not in present and field.nullable]
    wrong = [
        f"{field.name} ({present[field.name].dataType.simpleString() if field.name in present else 'missing'})"
        for field in table.schema
        if field not in new and (field.name not in present or present[field.name].dataType != field.dataType)
    ]
    unknown = [
        f"{name} (not null)"
        for name, field in present.items()
        if name not in table.schema.fieldNames() and not field.nullable
    ]
    if wrong or unknown:
        raise StoreError(
            f"table {table.name} at {path} was made by another version of lagwise: {', '.join(wrong + unknown)}. "
            "Install that version again, point tables.root at an empty folder, or move the old tables away."
        )
    if new:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({StructType(new).toDDL()})")
        log.info("columns added", extra={"table": table.name, "columns": [field.name for field in new]})
