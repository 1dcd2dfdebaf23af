"""Store: what keeps the tables small while the stream runs, in the stream's own thread (one writer per table).

It works through delta-rs, not through Spark: `VACUUM` alone starts hundreds of Spark tasks per table, which
takes longer than a batch may, and Spark's Delta expires its log by whole days only, when a day is thousands of
commits here.
"""

import logging
import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from pipeline import clock
from pipeline.row_keys import codes, last_of_each
from pipeline.tables.encoding import by_delta_rs
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME, TABLES, Table
from pipeline.tables.store import path_of

log = logging.getLogger(__name__)

_DAY = timedelta(days=1)
_GROUP_HISTORY = "group_history"
_TIME_COLUMN = {"lag_history": "date", "recommendations": "created_at", "quarantine": "updated_at"}


def run(root: str, *, at_ms: int, keep_days: int, storage_options: Mapping[str, str]) -> None:
    """Compact the append tables, delete rows older than `keep_days`, and remove files no version needs.

    What the history of groups says last of a group stays for as long as the group does: it may not change for months.

    Replaced files and the table log stay as long as each table's own retention properties say.
    """
    begun = time.monotonic()
    now = clock.at(at_ms)
    removed = 0
    for table in TABLES:
        handle = DeltaTable(path_of(root, table.name), storage_options=dict(storage_options) or None)
        if not table.is_latest:
            _compact(handle, Tables(root, storage_options), table, now, keep_days)
        # Full, by what lies in the folder: a checkpoint forgets which files were replaced when their retention
        # is over, whether or not they were removed by then, and a killed writer's files were never in the log.
        removed += len(handle.vacuum(dry_run=False, full=True))
        handle.create_checkpoint()
        handle.cleanup_metadata()
        if "://" not in root:
            removed += _sweep(Path(path_of(root, table.name)))
    log.info(
        "maintenance done", extra={"seconds": round(time.monotonic() - begun, 1), "files_removed": removed}
    )


def _sweep(table: Path) -> int:
    """Remove checksums of files that are gone; delta-rs does not know them, and there are five to a commit.

    Hadoop keeps one beside each file of a local disk (`.NAME.crc`), Delta one for each version of its log (`N.crc`).
    """
    removed = 0
    # Backwards, so that Delta's checksum goes before Hadoop's checksum of it.
    for checksum in sorted(table.rglob("*.crc"), reverse=True):
        stem = checksum.name.removesuffix(".crc")
        of = stem[1:] if stem.startswith(".") else f"{stem}.json"
        if not checksum.with_name(of).exists():
            checksum.unlink(missing_ok=True)
            removed += 1
    return removed


def _expire_groups(handle: DeltaTable, tables: Tables, oldest: date) -> None:
    """Delete the rows of the days before, less those that say what a group was at their end."""
    key, is_old = ("group_id", "updated_at"), pc.field("date") < pa.scalar(oldest)
    old = tables.read(_GROUP_HISTORY, columns=[*key, "why"], where=is_old)
    (group,) = codes(("group_id",), old)
    last = old.take(pa.array(last_of_each(group, old["updated_at"].cast(pa.int64()).to_numpy())))
    held = last.filter(pc.not_equal(last["why"], "gone"))
    if held.num_rows == old.num_rows:
        return
    is_candidate = is_old & pc.field("updated_at").isin(held["updated_at"].combine_chunks().unique())
    # Those of another version of lagwise, too.
    columns = [field.name for field in handle.schema().fields]
    rows = tables.read(_GROUP_HISTORY, columns=columns, where=is_candidate)
    own, kept = codes(key, rows, held)
    rows = rows.filter(pa.array(np.isin(own, kept)))
    write_deltalake(
        handle,
        rows,
        mode="overwrite",
        predicate=f"date < DATE '{oldest}'",
        writer_properties=by_delta_rs(BY_NAME[_GROUP_HISTORY].schema),
    )


def _compact(handle: DeltaTable, tables: Tables, table: Table, now: datetime, keep_days: int) -> None:
    # As the table is: one that an earlier version made has other partitions, or none.
    is_by_day = "date" in handle.metadata().partition_columns
    column = "date" if is_by_day else _TIME_COLUMN[table.name]
    oldest = (now - timedelta(days=keep_days)).date()
    if table.name == _GROUP_HISTORY:
        _expire_groups(handle, tables, oldest)
    else:
        handle.delete(f"{column} < {'DATE' if column == 'date' else 'TIMESTAMP'} '{oldest}'")
    # Yesterday's rows may still be in files that were written after midnight.
    days = [(now - _DAY).date().isoformat(), now.date().isoformat()]
    handle.optimize.compact(
        partition_filters=[("date", "in", days)] if is_by_day else None,
        writer_properties=by_delta_rs(table.schema),
    )
