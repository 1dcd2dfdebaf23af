"""The tables read without Spark and without a JVM, for the commands and for anyone's scripts.

from pipeline.tables.reading import Tables

lag = Tables(".lagwise/tables").read("partition_lag", columns=["group_id", "lag"])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from pipeline.errors import MissingTableError, StoreError

_LIKE_SPECIALS = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_", "*": "%", "?": "_"})


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables under one root, each read as of its newest version."""

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of delta-rs for an object store, secrets resolved."""

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Rows of table `name` for which `where` holds, in no particular order.

        A column that the table has not got, since an older lagwise wrote it, is null in every row.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        table = self._open(name)
        present = {field.name for field in table.schema().fields}
        try:
            rows = table.to_pyarrow_table(
                columns=[column for column in columns if column in present],
                filters=where,
                filesystem=_filesystem(table.table_uri),
            )
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise StoreError(f"table {name} at {table.table_uri} cannot be read: {_line(error)}") from error
        for column in columns:
            if column not in present:
                rows = rows.append_column(column, pa.nulls(rows.num_rows))
        return rows.select(list(columns))

    def dataset(self, name: str) -> ds.Dataset:
        """Table `name` to be read piece by piece, as of its newest version.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        table = self._open(name)
        return table.to_pyarrow_dataset(filesystem=_filesystem(table.table_uri))

    def written_at(self, name: str) -> datetime:
        """When the newest version of table `name` was written, by the clock of its writer.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be read.
        """
        timestamp_ms = self._open(name).history(1)[0]["timestamp"]
        return datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)

    def folder(self, name: str) -> FileSystem:
        """The files of table `name`, which exists."""
        root = self.root.rstrip("/")
        uri = f"{root if '://' in root else Path(root).absolute().as_uri()}/{name}"
        local = _filesystem(uri)
        return PyFileSystem(DeltaStorageHandler(uri, dict(self.storage_options))) if local is None else local

    def _open(self, name: str) -> DeltaTable:
        uri = f"{self.root.rstrip('/')}/{name}"
        try:
            return DeltaTable(uri, storage_options=dict(self.storage_options) or None)
        except TableNotFoundError:
            raise MissingTableError(
                f"no table {name} under {self.root}: either the stream has not written there yet, or "
                "--tables or tables.root of the configuration should name another folder"
            ) from None
        except (DeltaError, OSError) as error:
            raise StoreError(f"table {name} at {uri} cannot be opened: {_line(error)}") from error


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


def _filesystem(uri: str) -> SubTreeFileSystem | None:
    """Arrow's own file system for a table on this machine; None leaves it to deltalake.

    The one of deltalake is written in Python. Arrow's threads let go of its files after the read has returned,
    and a process that ends at that moment is aborted.
    """
    local = uri.startswith("file://") or "://" not in uri
    return SubTreeFileSystem(url2pathname(urlsplit(uri).path), LocalFileSystem()) if local else None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
