"""Store: the Delta tables, with the driver that may write them and the batch that each of them holds.

Every write is one Delta commit that carries two things in the commit itself:

- a transaction `("lagwise", term * 2**32 + batch_id + 3)`: the write is skipped if the table has seen the same or a
  higher number, which `Store` and the conflict check of Delta's protocol verify. So a driver whose term is over cannot
  write, whatever it believes, and a batch that runs twice under one term writes once;
- a stamp in the commit's user metadata (`Stamp`): the batch, its checkpoint and its clock. A restarted driver reads it
  to learn how far the replayed batch had come.

A commit follows exactly the version that this process knows, or it is refused: then the process looks at what others
have committed, and begins again. So what it knows may be old, and nothing is written from it all the same (`known`).

delta-rs commits in hundredths of a second, Spark's Delta in half of one, and on a local disk Spark's may overwrite a
commit of delta-rs (ADR 0030). Where rows are many, tasks write the files and the driver commits them.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from pipeline.errors import StoreError, TablesChangedError
from pipeline.tables import versions
from pipeline.tables.arrow import shaped
from pipeline.tables.encoding import by_delta_rs
from pipeline.tables.known import APP, KnownTable
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import BY_NAME, TABLES
from pipeline.tables.stamp import KEEPS_STAMPS, Stamp
from pipeline.tables.storage import check_room, trouble_of
from pipeline.tables.table_files import (
    UNSUPPORTED,
    TableFiles,
    TableRows,
    is_conflict,
    line_of,
    refuse_deletion_vectors,
)

log = logging.getLogger(__name__)

_Value = TypeVar("_Value")

_GONE = re.compile(r"NO_SUCH_KEY|Azure Error: \[\w*\] 404\b")
_TERM = 2**32
# The order of a term's writes: it is made known, tables are brought to this version, what the driver before has left
# is written, and then batches come, whose numbers begin at 0; that of who owns the tables is -1.
_TOUCHED, _REWRITTEN, _LEFT, _FIRST_BATCH = 0, 1, 2, 3

_ATTEMPTS = 10
_CHECKPOINT_WHEN_DUE = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


class Store:
    """The tables under one root, written by one driver under one term."""

    def __init__(
        self,
        root: str,
        *,
        term: int,
        storage_options: Mapping[str, str] | None = None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the tables, which exist (`creation.create_tables`).

        Args:
            root: Folder of the tables.
            term: Of the driver that writes; 0 to read.
            storage_options: For delta-rs, secrets resolved.
            on_answer: Called whenever the storage has answered.
        """
        self.root = root
        self.term = term
        self.storage_options = dict(storage_options or {})
        self._on_answer = on_answer
        self._tables: dict[str, KnownTable] = {}
        self._is_looked_at = False

    def under(self, term: int) -> "Store":
        """A store that writes the same tables under this term."""
        return Store(self.root, term=term, storage_options=self.storage_options, on_answer=self._on_answer)

    def look(self) -> None:
        """Go to the newest version of each table, and stay there until the next call, but for own commits and stamps.

        Before the first call each use of a table looks at it.
        """
        self._is_looked_at = True
        for known in self._tables.values():
            known.is_newest = False
        if self._tables:
            # At once: a store may take seconds for an answer.
            with ThreadPoolExecutor(len(self._tables)) as pool:
                list(pool.map(self._table, list(self._tables)))

    def path(self, name: str) -> str:
        """Folder of a table."""
        return path_of(self.root, name)

    def restamp(self, name: str, stamp: Stamp) -> None:
        """Give a table another stamp, without a row."""
        self._commit(name, _write_nothing, number=_LEFT, metadata=_metadata(stamp))

    def write(self, name: str, rows: pa.Table, stamp: Stamp) -> None:
        """Overwrite a latest table, or append to an append table, with `rows` and the batch's stamp.

        Does nothing if the table already holds this batch under this term, or if another driver has taken over.

        Args:
            name: Table.
            rows: All its columns, in any order.
            stamp: Of the batch.
        """
        self._write_arrow(name, rows, stamp, number=stamp.batch_id + _FIRST_BATCH)

    def write_files(self, name: str, make: Callable[[], Sequence[AddAction]], stamp: Stamp) -> None:
        """Overwrite a latest table with files, or append them to an append table, as `write` does with rows.

        Args:
            name: Table.
            make: Writes the files (`files.write_file`); not called when the table takes nothing.
            stamp: Of the batch.
        """
        made = cache(make)
        table = BY_NAME[name]

        def write(handle: DeltaTable, commit: CommitProperties) -> None:
            handle.create_write_transaction(
                list(made()),
                "overwrite" if table.is_latest else "append",
                handle.schema(),
                partition_by=list(table.partition_by) or None,
                commit_properties=commit,
                post_commithook_properties=_CHECKPOINT_WHEN_DUE,
            )

        self._commit(name, write, number=stamp.batch_id + _FIRST_BATCH, metadata=_metadata(stamp))

    def append_left(self, name: str, rows: pa.Table, stamp: Stamp) -> None:
        """Append rows that an earlier driver left unwritten, without a batch number: no later batch is skipped."""
        self._write_arrow(name, rows, stamp, number=_LEFT)

    def _write_arrow(self, name: str, rows: pa.Table, stamp: Stamp, *, number: int) -> None:
        def write(handle: DeltaTable, commit: CommitProperties) -> None:
            write_deltalake(
                handle,
                shaped(rows, BY_NAME[name].schema),
                mode="overwrite" if BY_NAME[name].is_latest else "append",
                # Columns that only another version of lagwise knows are null.
                schema_mode="merge",
                writer_properties=by_delta_rs(BY_NAME[name].schema),
                commit_properties=commit,
                post_commithook_properties=_CHECKPOINT_WHEN_DUE,
            )

        self._commit(name, write, number=number, metadata=_metadata(stamp))

    def touch(self) -> None:
        """Make the term known to every table, so that writes of earlier terms are skipped from now on."""
        for table in TABLES:
            # A commit without rows. Spark would take a second for all tables where this takes hundredths.
            self._commit(table.name, _write_nothing, number=_TOUCHED)

    def rewrite(self, name: str, write: Callable[[DeltaTable, CommitProperties], None]) -> None:
        """Rewrite a table for this schema version (`versions`) in one commit, once per term.

        Args:
            name: Table.
            write: Commits with the given properties; called again if another driver has committed.
        """
        self._commit(name, write, number=_REWRITTEN, more=(versions.statement(name),))

    def schema_version(self, name: str) -> int:
        """See `versions.stated`."""
        return versions.stated(self._table(name).handle)

    def _commit(
        self,
        name: str,
        write: Callable[[DeltaTable, CommitProperties], None],
        *,
        number: int,
        metadata: Mapping[str, str] | None = None,
        more: Sequence[Transaction] = (),
    ) -> None:
        """One commit by delta-rs, unless the table has seen its number of this term, or a later term.

        Raises:
            StoreError: The table takes no commit though nobody else has made one.
        """
        number += self.term * _TERM
        commit = CommitProperties(
            app_transactions=[Transaction(APP, number), *more],
            custom_metadata=dict(metadata or {}),
            # Files that somebody compacts meanwhile conflict with nothing, for delta-rs, and their rows would be
            # doubled: a commit that does not follow the version that was read is refused, and begins again.
            max_commit_retries=0,
        )
        check_room(self.root)
        for attempt in range(1, _ATTEMPTS + 1):
            known = self._table(name)
            # As Delta does before its own writes: nothing of an earlier term comes after a later one.
            if known.number >= number:
                return
            try:
                known.commit(number, lambda handle: write(handle, commit))
            except CommitFailedError as error:
                if attempt == _ATTEMPTS:
                    raise
                if not is_conflict(error) and trouble_of(error) is None:
                    raise StoreError(
                        f"table {name} at {known.handle.table_uri} cannot be written: {line_of(error)}; {UNSUPPORTED}"
                    ) from error
                log.info("another driver also writes to the table", extra={"table": name, "attempt": attempt})
            else:
                self._on_answer()
                return

    def highest_term(self) -> int:
        """The highest term that any table has seen: `planner_state` itself may be lost, or restored from a copy."""
        return max(max(0, self._table(table.name).number) // _TERM for table in TABLES)

    def stamp(self, name: str) -> Stamp | None:
        """See `newest_stamp`."""
        return self._table(name).stamp

    def written_ms(self, name: str) -> int | None:
        """Clock of the batch that wrote the newest row; None without rows.

        Versions would not tell: each start commits to every table, and so does maintenance.
        """
        newest = pc.max(self.arrow(name, ["updated_at"])["updated_at"]).as_py()
        return None if newest is None else round(newest.timestamp() * 1000)

    def rows(self, name: str, columns: list[str]) -> list[dict[str, Any]]:
        """Some columns of the newest version of a small table, without Spark."""
        rows: list[dict[str, Any]] = self.arrow(name, columns).to_pylist()
        return rows

    def arrow(
        self, name: str, columns: list[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Rows of the newest version of a small table, all columns of its schema or some, without Spark."""
        named = BY_NAME[name].schema.fieldNames() if columns is None else columns
        return self._read(name, lambda rows: rows.read(columns=named, where=where))

    def identity(self) -> str:
        """Return Delta's id of the tables: re-created tables have another one, a copy has the same."""
        return str(self._table("planner_state").handle.metadata().id)

    def count(self, name: str, where: pc.Expression | None = None) -> int:
        """Count the rows of a table's newest version for which `where` holds, without Spark."""
        return self._read(name, lambda rows: rows.count(where))

    def files(self, names: Iterable[str]) -> dict[str, TableFiles]:
        """The files of each of these tables, for tasks that are to read what this store reads."""
        return {name: self._table(name).files for name in names}

    def handle(self, name: str) -> DeltaTable:
        """The newest version of a table, for maintenance: it may cut the log under who knows the table already.

        Raises:
            StoreError: It has deletion vectors.
        """
        self._tables.pop(name, None)
        handle = self._opened(name).handle
        refuse_deletion_vectors(name, handle)
        return handle

    def _read(self, name: str, read: Callable[[TableRows], _Value]) -> _Value:
        try:
            value = read(self._table(name).rows)
        except StoreError as error:
            if not _is_gone(error.__context__):
                raise
            raise self._changed(f"files of the newest version of table {name} are gone ({error})") from error
        self._on_answer()
        return value

    def _table(self, name: str) -> KnownTable:
        """The table at the version at which it was looked at last, or at its newest one."""
        known = self._tables.get(name)
        if known is None:
            known = self._tables[name] = self._opened(name)
            return known
        known.is_newest &= self._is_looked_at
        try:
            has_looked = known.look()
        except DeltaError as error:
            if trouble_of(error) is not None:
                raise
            raise self._changed(
                f"table {name} does not continue what was known of it ({line_of(error)})"
            ) from error
        if has_looked:
            self._on_answer()
        return known

    def _changed(self, what: str) -> TablesChangedError:
        # Who begins again begins with what is there.
        self._tables.clear()
        return TablesChangedError(f"{what}: the tables were removed, or replaced by a copy")

    def _opened(self, name: str) -> KnownTable:
        handle = Tables(absolute(self.root), self.storage_options).open(name).handle
        self._on_answer()
        return KnownTable(name, handle, self.storage_options)


def _is_gone(cause: BaseException | None) -> bool:
    """Whether a file is not there: Arrow tells the answer of an object store only in words."""
    return isinstance(cause, FileNotFoundError) or bool(_GONE.search(str(cause)))


def _metadata(stamp: Stamp) -> dict[str, str]:
    # Where Spark puts it.
    return {"userMetadata": stamp.to_json()}


def _write_nothing(handle: DeltaTable, commit: CommitProperties) -> None:
    handle.create_write_transaction(
        [],
        "append",
        handle.schema(),
        commit_properties=commit,
        post_commithook_properties=KEEPS_STAMPS,
    )


def path_of(root: str, name: str) -> str:
    """Folder of the table `name` under `root`; a relative one starts at the working directory."""
    # Delta takes a relative location for the name of a table.
    return f"{absolute(root)}/{name}"


def absolute(root: str) -> str:
    """The root as every process finds it."""
    return root.rstrip("/") if "://" in root else str(Path(root).absolute())
