"""The tables read without Spark and without a JVM, for the commands and for anyone's scripts.

from pipeline.tables.reading import Tables

lag = Tables(".lagwise/tables").read("partition_lag", columns=["group_id", "lag"])
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileSystem

from pipeline import clock
from pipeline.errors import MissingTableError, StoreError
from pipeline.tables.filesystem import check_login, files_at
from pipeline.tables.stamp import Stamp, newest_stamp
from pipeline.tables.table_files import TableRows, files_of, line_of, unopened
from pipeline.tables.versions import refuse_newer

_LIKE_SPECIALS = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_", "*": "%", "?": "_"})


class Readable(Protocol):
    """Tables, whichever versions of them: `Tables`, or some that were opened together."""

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Read table `name` as `OpenTable.read` does.

        Raises:
            MissingTableError: There is no such table.
            StoreError: It cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One version of a table; later writes do not change what is read."""

    name: str
    handle: DeltaTable
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of delta-rs for an object store, secrets resolved."""

    @property
    def version(self) -> int:
        """Rises with each commit."""
        return self.handle.version()

    @property
    def stamp(self) -> Stamp | None:
        """Stamp of the newest batch that has written the table; None if none has.

        Raises:
            StoreError: Its log cannot be read.
        """
        try:
            return newest_stamp(self.handle)
        except (DeltaError, OSError) as error:
            raise StoreError(
                f"the log of table {self.name} at {self.handle.table_uri} cannot be read: {line_of(error)}"
            ) from error

    def read(self, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return rows as `TableRows.read` does.

        Raises:
            StoreError: It cannot be read.
        """
        return self._rows().read(columns=columns, where=where)

    def count(self, where: pc.Expression) -> int:
        """Count the rows for which `where` holds.

        Raises:
            StoreError: It cannot be read.
        """
        return self._rows().count(where)

    def dataset(self) -> ds.Dataset:
        """The table to be read piece by piece."""
        return self._rows().dataset

    def _rows(self) -> TableRows:
        return TableRows(files_of(self.name, self.handle), self.storage_options)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables under one root, each read as of its newest version."""

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of delta-rs for an object store, secrets resolved."""

    def open(self, name: str) -> OpenTable:
        """Open the newest version of table `name`.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be opened, or a newer lagwise has written it.
        """
        uri = f"{self.root.rstrip('/')}/{name}"
        check_login(uri, self.storage_options)
        try:
            handle = DeltaTable(uri, storage_options=dict(self.storage_options) or None)
            refuse_newer(name, handle)
        except TableNotFoundError:
            raise MissingTableError(
                f"no table {name} under {self.root}: either the stream has not written there yet, or "
                "--tables or tables.root of the configuration should name another folder"
            ) from None
        except (DeltaError, OSError) as error:
            raise unopened(name, uri, error) from error
        return OpenTable(name, handle, self.storage_options)

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Read the newest version of table `name` as `OpenTable.read` does.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        return self.open(name).read(columns=columns, where=where)

    def dataset(self, name: str) -> ds.Dataset:
        """Return the newest version of table `name` for reading in pieces.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        return self.open(name).dataset()

    def written_at(self, name: str) -> datetime:
        """Return when the newest version of table `name` was written, by its writer's clock.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        handle = self.open(name).handle
        try:
            newest = handle.history(1)
        except (DeltaError, OSError) as error:
            raise StoreError(
                f"the log of table {name} at {handle.table_uri} cannot be read: {line_of(error)}"
            ) from error
        if not newest:
            raise StoreError(
                f"the newest entry in the log of table {name} at {handle.table_uri} is empty: the disk was full, or "
                "a file was damaged; the next batch of the stream writes a new one"
            )
        return clock.at(newest[0]["timestamp"])

    def folder(self, name: str) -> FileSystem:
        """The files of table `name`, which exists."""
        return files_at(f"{self.root.rstrip('/')}/{name}", self.storage_options)


def read_together(
    tables: Readable, columns: Mapping[str, Sequence[str]], where: pc.Expression | None
) -> list[pa.Table]:
    """Read several tables at once, since an object store may take seconds for an answer.

    Args:
        tables: Tables.
        columns: Columns of each table to read.
        where: Condition for rows of each table.

    Returns:
        The rows, in the order of `columns`.

    Raises:
        StoreError: One of them cannot be read.
    """
    with ThreadPoolExecutor(len(columns)) as pool:
        return list(pool.map(lambda one: tables.read(one[0], columns=one[1], where=where), columns.items()))


def matches(column: str, globs: Sequence[str]) -> pc.Expression | None:
    """A filter for rows whose `column` matches any of `globs` (`*` any text, `?` one character)."""
    found: pc.Expression | None = None
    for glob in globs:
        if "*" in glob or "?" in glob:
            one = pc.match_like(pc.field(column), pattern=glob.translate(_LIKE_SPECIALS))
        else:
            one = pc.field(column) == glob
        found = one if found is None else found | one
    return found


def all_of(*conditions: pc.Expression | None) -> pc.Expression | None:
    """A filter for rows that meet every condition; a null condition holds always."""
    found: pc.Expression | None = None
    for condition in conditions:
        if condition is not None:
            found = condition if found is None else found & condition
    return found
