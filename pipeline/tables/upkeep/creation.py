"""Store: creates the tables, or updates them to what this version writes, through delta-rs and before Spark starts."""

import json
import logging
from collections.abc import Iterator, Mapping

from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.config.object_stores import store_of
from pipeline.errors import StoreError
from pipeline.tables import versions
from pipeline.tables.filesystem import check_login
from pipeline.tables.schemas import INDEXED_COLUMNS, TABLES, Table
from pipeline.tables.stamp import KEEPS_STAMPS
from pipeline.tables.storage import trouble_of
from pipeline.tables.store import path_of
from pipeline.tables.table_files import UNSUPPORTED, is_conflict, line_of, unopened

log = logging.getLogger(__name__)


def create_tables(root: str, *, retention_hours: float, storage_options: Mapping[str, str]) -> None:
    """Create missing tables and nullable columns, and update retention.

    A table whose schema has an earlier version stays as it is until the driver owns it (`upgrade`).

    Args:
        root: Folder of the tables.
        retention_hours: How long replaced files and the table log stay; longer than any reader runs.
        storage_options: For delta-rs, secrets resolved.

    Raises:
        StoreError: A newer version or another program has written a table, or it cannot be opened, or the object store
            lets one commit overwrite another, or nothing says how to log in there.
    """
    options = dict(storage_options) or None
    if store_of(root) is not None:
        check_login(root, storage_options)
        _check_conditional_put(path_of(root, "_conditional_put"), options)
    for table in TABLES:
        path = path_of(root, table.name)
        properties = _properties(table, retention_hours)
        present = _opened(table.name, path, options)
        if present is not None:
            versions.refuse_newer(table.name, present)
            try:
                if not versions.changes_since(table.name, versions.stated(present)):
                    _fit(present, table, path)
                _alter(present, properties)
            except CommitFailedError as error:
                if is_conflict(error) or trouble_of(error) is not None:
                    raise
                raise StoreError(
                    f"table {table.name} at {path} cannot be changed: {line_of(error)}; {UNSUPPORTED}"
                ) from error
        else:
            DeltaTable.create(
                path,
                schema=Schema.from_json(table.schema.json()),
                mode="ignore",
                partition_by=list(table.partition_by),
                configuration=properties,
                storage_options=options,
                commit_properties=CommitProperties(app_transactions=[versions.statement(table.name)]),
            )


def _opened(name: str, path: str, options: dict[str, str] | None) -> DeltaTable | None:
    """The table at a path; None if there is none."""
    # `is_deltatable` holds the GIL while a store does not answer, so no other thread of the driver runs.
    try:
        return DeltaTable(path, storage_options=options)
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise unopened(name, path, error) from error


def _check_conditional_put(path: str, options: dict[str, str] | None) -> None:
    """Two commits of one version: a store that takes both keeps no second driver out."""
    schema = Schema.from_json(StructType([StructField("x", StringType())]).json())
    if _opened("_conditional_put", path, options) is None:
        DeltaTable.create(path, schema=schema, mode="ignore", storage_options=options)
    first, second = (DeltaTable(path, storage_options=options) for _ in range(2))
    first.create_write_transaction([], "append", schema)
    try:
        once = CommitProperties(max_commit_retries=0)
        second.create_write_transaction([], "append", schema, commit_properties=once)
    except CommitFailedError:
        return
    raise StoreError(
        f"the store of {path} lets one commit overwrite another: it must support conditional puts (If-None-Match), "
        "as S3 (since 2024) and Azure do; use such a store, or a folder"
    )


def _properties(table: Table, retention_hours: float) -> dict[str, str]:
    minutes = max(1, round(retention_hours * 60))
    common = {
        "delta.enableDeletionVectors": "false",
        # Statistics for columns nobody filters by cost time in every batch.
        "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS),
        # Replaced files are of use only to a reader that is still at an older version.
        "delta.deletedFileRetentionDuration": f"interval {minutes} minutes",
        "delta.logRetentionDuration": f"interval {minutes} minutes",
    }
    # A commit every few seconds: a checkpoint at every tenth would be written a thousand times a day.
    return common | ({"delta.checkpointInterval": "25"} if table.is_latest else {})


def _alter(present: DeltaTable, wanted: Mapping[str, str]) -> None:
    configured = present.metadata().configuration
    changed = {key: value for key, value in wanted.items() if configured.get(key) != value}
    if changed:
        present.alter.set_table_properties(changed, post_commithook_properties=KEEPS_STAMPS)


def _fit(stored: DeltaTable, table: Table, path: str) -> None:
    """Add the columns that later versions have brought; what else differs is an error.

    A column more than this version knows stays, null in rows to come. Writes go by name: the order is free.
    """
    schema = StructType.fromJson(json.loads(stored.schema().to_json()))
    present: dict[str, StructField] = {field.name: field for field in schema}
    new = [field for field in table.schema if field.name not in present and field.nullable]
    unfit = [*_wrong(present, table.schema), *_unfilled(present, table.schema)]
    if unfit:
        raise StoreError(
            f"table {table.name} at {path} does not fit this version of lagwise: {', '.join(unfit)}; restore it from "
            "a backup, or move its folder away so that lagwise fills it again from Kafka, without its history "
            "(deploy/docs/upgrading.md)"
        )
    if new:
        stored.alter.add_columns(
            Schema.from_json(StructType(new).json()).fields, post_commithook_properties=KEEPS_STAMPS
        )
        log.info("columns added", extra={"table": table.name, "columns": [field.name for field in new]})


def _wrong(present: Mapping[str, StructField], schema: StructType) -> Iterator[str]:
    """Columns of `schema` that are of another type there, or not there and cannot be null."""
    for field in schema:
        stored = present.get(field.name)
        if stored is None and not field.nullable:
            yield f"{field.name} (missing)"
        elif stored is not None and stored.dataType != field.dataType:
            yield f"{field.name} ({stored.dataType.simpleString()})"


def _unfilled(present: Mapping[str, StructField], schema: StructType) -> Iterator[str]:
    """Columns that `schema` does not have and that cannot be null: rows to come would leave them empty."""
    known = set(schema.fieldNames())
    for name, field in present.items():
        if name not in known and not field.nullable:
            yield f"{name} (not null)"
