"""Maintenance of the store's tables: it keeps them small while the stream runs.

It runs in the thread of the stream, so each table has one writer.

A round consists of many slices, each of one table. A batch runs as many as its time allows, and the next batches
continue with the rest. Only the process knows the rest of a round: a killed round starts over, and a slice that has
already run finds nothing to do.

It works through delta-rs, not through Spark: `VACUUM` alone starts hundreds of Spark tasks per table, which
takes longer than a batch may, and Spark's Delta expires its log by whole days only, when a day is thousands of
commits here.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from pipeline import clock
from pipeline.row_keys import codes, newest_of_groups
from pipeline.tables.encoding import by_delta_rs
from pipeline.tables.schemas import BY_NAME, TABLES, Table
from pipeline.tables.storage import trouble_of
from pipeline.tables.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """The row of each group that stays whatever its age, by table and condition."""

    time: str
    says: str
    """The column that the two conditions are about."""
    among: pc.Expression
    unless: pc.Expression

    def of(self, some: pa.Table) -> pa.Table:
        """These of some rows."""
        return newest_of_groups(some, self.time).filter(~self.unless)


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


_FILE_BYTES = 32 * 2**20
"""Maximum size of a compacted file: delta-rs writes 33 MB a second on one core, and a slice that has to rewrite a file
that is nearly full and what came since takes a second or two (`deploy/docs/performance.md`, Maintenance)."""
_MOST_S = 2.0
_MAY_TAKE = 2.0
"""Factor on how long it took last time, for a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Tables to maintain, and the rows that they keep."""

    store: Store
    keep_days: int
    is_dated: bool = True
    """True if commits vouch for the clock of the batch. Otherwise a day expires only once `lag_history` has rows of
    more than `keep_days` later days: a clock that is weeks ahead cannot delete the whole history."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a round that runs in one piece; its text is for operators."""

    doing: str
    """A key of `_WORK`."""
    table: Table

    def __str__(self) -> str:
        return f"{self.doing} {self.table.name}"


_EXPIRE = "expire"
_ROUND = (
    *(Slice(doing, table) for table in TABLES if not table.is_latest for doing in (_EXPIRE, "compact")),
    *(Slice("clean", table) for table in TABLES),
)
_FILL = Slice("fill", BY_NAME["lag_history"])
"""It grows fastest."""


@dataclass(slots=True)
class Round:
    """The remaining slices, and the last duration of each."""

    _left: deque[Slice] = field(default_factory=deque)
    _took_s: dict[Slice, float] = field(default_factory=dict)
    _is_overdue: bool = False
    """The next round was due before this one had ended."""
    _worked_s: float = 0.0
    _removed: int = 0

    def begin(self, *, expires: bool = True) -> None:
        """Begin a round that is due; it includes the rest of the previous one.

        Args:
            expires: Whether the batch's clock can be trusted to say what is too old.
        """
        self._is_overdue = self._is_going_on
        self._left.extend(
            one for one in _ROUND if one not in self._left and (expires or one.doing != _EXPIRE)
        )

    @property
    def _is_going_on(self) -> bool:
        return any(one != _FILL for one in self._left)

    def begin_filling(self) -> None:
        """Between rounds: small files of the history are merged as soon as they fill one."""
        if _FILL not in self._left:
            self._left.append(_FILL)

    def work(
        self,
        kept: Kept,
        *,
        at_ms: int,
        spare_s: float,
        begins: Callable[[str], None],
        is_whole: bool = False,
    ) -> None:
        """Run slices while there is time for them: two seconds at most, and not beyond the next batch.

        One slice of an overdue round always runs: tables without maintenance would fill the disk. A slice that
        raises waits for the next round, unless it could not reach the tables.

        Args:
            kept: Tables.
            at_ms: Clock of the batch.
            spare_s: Until the next batch is due; 0 or less when it is already.
            begins: Called with each slice before it runs.
            is_whole: Whether to run all slices, however long they take.

        Raises:
            Exception: The tables cannot be reached (`storage.trouble_of`).
        """
        begun_s, is_first = time.monotonic(), True
        while self._left:
            one, spent_s = self._left[0], time.monotonic() - begun_s
            ends_s = spent_s + self._may_take_s(one)
            is_in_time = ends_s < spare_s and (is_first or ends_s <= _MOST_S)
            if not is_whole and not is_in_time and not (is_first and self._is_overdue):
                return
            begins(str(one))
            self._do(one, kept, at_ms)
            is_first = False

    def _may_take_s(self, one: Slice) -> float:
        """One that has never run has a batch for itself."""
        return _MAY_TAKE * self._took_s[one] if one in self._took_s else _MOST_S

    def _do(self, one: Slice, kept: Kept, at_ms: int) -> None:
        begun_s = time.monotonic()
        try:
            self._removed += _WORK[one.doing](kept, one.table, clock.at(at_ms))
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            # What was not done now is done next time.
            log.exception("maintenance failed", extra={"tables_root": kept.store.root, "doing": str(one)})
        self._left.popleft()
        self._took_s[one] = time.monotonic() - begun_s
        self._worked_s += self._took_s[one]
        if one != _FILL and not self._is_going_on:
            log.info(
                "maintenance done",
                extra={"seconds": round(self._worked_s, 1), "files_removed": self._removed},
            )
            self._is_overdue, self._worked_s, self._removed = False, 0.0, 0


def _clean(kept: Kept, table: Table, _now: datetime) -> int:
    """Remove files that no version needs, and cut the log; how many files were removed.

    Replaced files and the table log stay as long as each table's own retention properties say.
    """
    handle = kept.store.handle(table.name)
    # Full, by what lies in the folder: a checkpoint forgets which files were replaced when their retention
    # is over, whether or not they were removed by then, and a killed writer's files were never in the log.
    removed = len(handle.vacuum(dry_run=False, full=True))
    handle.create_checkpoint()
    handle.cleanup_metadata()
    if "://" not in kept.store.root:
        removed += _sweep(Path(kept.store.path(table.name)))
    return removed


def _sweep(table: Path) -> int:
    """Remove checksums of files that are gone; delta-rs does not know them, and there are five to a commit.

    Hadoop keeps one for each file of a local disk (`.NAME.crc`), Delta one for each version of its log (`N.crc`).
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


def _expire_but_last(handle: DeltaTable, store: Store, name: str, oldest: date) -> None:
    """Delete the rows of the days before, less the last one of each group."""
    last, is_old = _LAST[name], pc.field("date") < pa.scalar(oldest)
    key = ("group_id", last.time)
    # Of ten million decisions few are plans: the others are not read.
    held = last.of(store.arrow(name, [*key, last.says], is_old & last.among))
    if held.num_rows == store.count(name, is_old):
        return
    is_candidate = is_old & last.among & pc.field(last.time).isin(held[last.time].combine_chunks().unique())
    # Those of another version of lagwise, too.
    columns = [field.name for field in handle.schema().fields]
    rows = store.arrow(name, columns, is_candidate)
    own, kept = codes(key, rows, held)
    rows = rows.filter(pa.array(np.isin(own, kept)))
    write_deltalake(
        handle,
        rows,
        mode="overwrite",
        predicate=f"date < DATE '{oldest}'",
        writer_properties=by_delta_rs(BY_NAME[name].schema),
    )


def _expire(kept: Kept, table: Table, now: datetime) -> int:
    """Delete rows older than `keep_days`, but for what stays of each group (`_LAST`).

    What the history of groups says last of a group stays for as long as the group does, and its last plan for ever.
    """
    handle = kept.store.handle(table.name)
    oldest = _first_kept_day(kept, now)
    if oldest is None:
        return 0
    if table.name in _LAST:
        _expire_but_last(handle, kept.store, table.name, oldest)
    else:
        # As the table is: one that an earlier version made has other partitions, or none.
        column = "date" if _is_by_day(handle) else _TIME_COLUMN[table.name]
        handle.delete(f"{column} < {'DATE' if column == 'date' else 'TIMESTAMP'} '{oldest}'")
    return 0


def _first_kept_day(kept: Kept, now: datetime) -> date | None:
    """The day whose rows are the oldest to be kept; None if all are."""
    oldest = (now - timedelta(days=kept.keep_days)).date()
    if kept.is_dated:
        return oldest
    # It has rows of each day on which a driver ran: by their own days, tables with few rows would keep them for longer.
    history = kept.store.handle("lag_history")
    if not _is_by_day(history):
        return oldest
    days = sorted(set(pa.table(history.get_add_actions(flatten=True))["partition.date"].to_pylist()))
    return min(oldest, days[-kept.keep_days - 1]) if len(days) > kept.keep_days else None


def _compact(kept: Kept, table: Table, now: datetime) -> int:
    """Merge small files."""
    handle = kept.store.handle(table.name)
    # Yesterday's rows may still be in files that were written after midnight.
    days = [(now - _DAY).date().isoformat(), now.date().isoformat()]
    handle.optimize.compact(
        partition_filters=[("date", "in", days)] if _is_by_day(handle) else None,
        target_size=_FILE_BYTES,
        writer_properties=by_delta_rs(table.schema),
    )
    return 0


def _fill(kept: Kept, table: Table, now: datetime) -> int:
    """Merge today's small files if they fill a file; otherwise the same rows would be rewritten again and again."""
    handle = kept.store.handle(table.name)
    files = pa.table(handle.get_add_actions(flatten=True))
    if _is_by_day(handle):
        files = files.filter(pc.field("partition.date") == pa.scalar(now.date()))
    sizes = files["size_bytes"].to_numpy()
    # What delta-rs calls full is a commit or two short of it.
    if sizes[sizes < _FILE_BYTES / 2].sum() < _FILE_BYTES:
        return 0
    return _compact(kept, table, now)


def _is_by_day(handle: DeltaTable) -> bool:
    return "date" in handle.metadata().partition_columns


_WORK: dict[str, Callable[[Kept, Table, datetime], int]] = {
    _EXPIRE: _expire,
    "compact": _compact,
    "fill": _fill,
    "clean": _clean,
}
"""What a slice does; the files that it has removed come out."""
