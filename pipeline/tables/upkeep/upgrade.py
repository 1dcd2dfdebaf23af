"""Store: the driver that owns the tables upgrades those of earlier versions in place.

One Delta commit rewrites a table and records the version (`versions`). A driver that is killed before the commit leaves
the table as it was, plus files that maintenance removes; the next driver starts over. After the commit, it continues
with the next table. The commit is fenced by the term like every other, readers see the
table before or after it, and replaced files stay for `tables.retention_hours`.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from pyspark.sql.types import StructType

from pipeline.tables import versions
from pipeline.tables.encoding import by_delta_rs
from pipeline.tables.reading import OpenTable
from pipeline.tables.schemas import TABLES, Table
from pipeline.tables.stamp import KEEPS_STAMPS
from pipeline.tables.store import Store
from pipeline.tables.versions import Change

log = logging.getLogger(__name__)

_SAID_EVERY_S = 10.0


def upgrade(store: Store, on_progress: Callable[[], None]) -> None:
    """Bring every table to the version that this lagwise writes; skip tables that have it.

    Args:
        store: Store, open under the term of this driver.
        on_progress: Called now and then while a table is rewritten.
    """
    for table in TABLES:
        changes = versions.changes_since(table.name, store.schema_version(table.name))
        if changes:
            _rewrite(store, table, changes, on_progress)


def _rewrite(
    store: Store, table: Table, changes: tuple[Change, ...], on_progress: Callable[[], None]
) -> None:
    begun = time.monotonic()
    log.info(
        "rewriting a table for this version",
        extra={
            "table": table.name,
            "from_version": changes[0].version - 1,
            "to_version": changes[-1].version,
            "changes": [change.what for change in changes],
        },
    )

    def write(handle: DeltaTable, commit: CommitProperties) -> None:
        write_deltalake(
            handle,
            _rows(OpenTable(table.name, handle, store.storage_options), table, changes, on_progress),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(table.partition_by),
            writer_properties=by_delta_rs(table.schema),
            commit_properties=commit,
            post_commithook_properties=KEEPS_STAMPS,
        )

    store.rewrite(table.name, write)
    log.info(
        "table has the schema of this version",
        extra={
            "table": table.name,
            "to_version": changes[-1].version,
            "seconds": round(time.monotonic() - begun, 1),
        },
    )


def _rows(
    opened: OpenTable,
    table: Table,
    changes: tuple[Change, ...],
    on_progress: Callable[[], None],
) -> pa.RecordBatchReader:
    """All rows, with the columns of this version, in parts that fit into memory."""
    handle = opened.handle
    schema = _schema(handle, table, changes)
    stored = set(Schema.from_json(handle.schema().to_json()).to_arrow().names)
    computed = {name: one for change in changes for name, one in change.computed.items()}
    columns = {
        field.name: computed.get(
            field.name,
            pc.field(field.name) if field.name in stored else pc.scalar(pa.scalar(None, field.type)),
        )
        for field in schema
    }
    # Read the version whose files the commit replaces, so that no row is lost or doubled if others commit meanwhile.
    rows = opened.dataset()
    read = rows.scanner(columns=columns).to_reader()
    return pa.RecordBatchReader.from_batches(
        schema, _told(read, schema, table.name, rows.count_rows(), on_progress)
    )


def _schema(handle: DeltaTable, table: Table, changes: tuple[Change, ...]) -> pa.Schema:
    """The columns of this version, followed by those that only another version knows."""
    gone = {name for change in changes for name in change.dropped}
    present = StructType.fromJson(json.loads(handle.schema().to_json()))
    known = set(table.schema.fieldNames())
    others = [field for field in present if field.name not in known | gone]
    return pa.schema(Schema.from_json(StructType([*table.schema, *others]).json()).to_arrow())


def _told(
    read: pa.RecordBatchReader, schema: pa.Schema, name: str, rows: int, on_progress: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    done, said_s = 0, time.monotonic()
    for batch in read:
        yield batch.cast(schema)
        done += batch.num_rows
        if time.monotonic() - said_s >= _SAID_EVERY_S:
            said_s = time.monotonic()
            on_progress()
            log.info("still rewriting the table", extra={"table": name, "rows_done": done, "rows": rows})
