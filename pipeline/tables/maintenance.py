"""Store: what keeps the tables small while the stream runs, in the stream's own thread (one writer per table).

It works through delta-rs, not through Spark: `VACUUM` alone starts hundreds of Spark tasks per table, which
takes longer than a batch may, and Spark's Delta expires its log by whole days only, when a day is thousands of
commits here.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """Which row of each group stays however old it is: the last one of some, unless it says something."""

    time: str
    says: str
    """The column that the two conditions are about."""
    among: pc.Expression
    unless: pc.Expression

    def of(self, some: pa.Table) -> pa.Table:
        """These of some rows."""
        (group,) = codes(("group_id",), some)
        last = last_of_each(group, some[self.time].cast(pa.int64()).to_numpy())
        return some.take(pa.array(last)).filter(~self.unless)


_LAST = {
    # What a group is may not change for months.
    "group_history": _Last(
        time="updated_at", says="why", among=pc.scalar(True), unless=pc.field("why") == "gone"
    ),
    # Of a plan that was withdrawn the control topic keeps nothing, and no epoch may be used twice.
    "recommendations": _Last(
        time="created_at", says="decision", among=pc.field("decision") == "publish", unless=pc.scalar(False)
    ),
}
_DAY = timedelta(days=1)
_TIME_COLUMN = {"lag_history": "date", "recommendations": "created_at", "quarantine": "updated_at"}


def run(root: str, *, at_ms: int, keep_days: int, storage_options: Mapping[str, str]) -> None:
    """Compact the append tables, delete rows older than `keep_days`, and remove files no version needs.

    What the history of groups says last of a group stays for as long as the group does, and its last plan for ever.

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


def _expire_but_last(handle: DeltaTable, tables: Tables, name: str, oldest: date) -> None:
    """Delete the rows of the days before, less the last one of each group."""
    last, is_old = _LAST[name], pc.field("date") < pa.scalar(oldest)
    key = ("group_id", last.time)
    # Of ten million decisions few are plans: the others are not read.
    held = last.of(tables.read(name, columns=[*key, last.says], where=is_old & last.among))
    if held.num_rows == tables.dataset(name).count_rows(filter=is_old):
        return
    is_candidate = is_old & last.among & pc.field(last.time).isin(held[last.time].combine_chunks().unique())
    # Those of another version of lagwise, too.
    columns = [field.name for field in handle.schema().fields]
    rows = tables.read(name, columns=columns, where=is_candidate)
    own, kept = codes(key, rows, held)
    rows = rows.filter(pa.array(np.isin(own, kept)))
    write_deltalake(
        handle,
        rows,
        mode="overwrite",
        predicate=f"date < DATE '{oldest}'",
        writer_properties=by_delta_rs(BY_NAME[name].schema),
    )


def _compact(handle: DeltaTable, tables: Tables, table: Table, now: datetime, keep_days: int) -> None:
    # As the table is: one that an earlier version made has other partitions, or none.
    is_by_day = "date" in handle.metadata().partition_columns
    column = "date" if is_by_day else _TIME_COLUMN[table.name]
    oldest = (now - timedelta(days=keep_days)).date()
    if table.name in _LAST:
        _expire_but_last(handle, tables, table.name, oldest)
    else:
        handle.delete(f"{column} < {'DATE' if column == 'date' else 'TIMESTAMP'} '{oldest}'")
    # Yesterday's rows may still be in files that were written after midnight.
    days = [(now - _DAY).date().isoformat(), now.date().isoformat()]
    handle.optimize.compact(
        partition_filters=[("date", "in", days)] if is_by_day else None,
        writer_properties=by_delta_rs(table.schema),
    )
