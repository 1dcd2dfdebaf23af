"""Versions of a table that can still be read."""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from posixpath import basename

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector

from pipeline import clock
from pipeline.errors import StoreError
from pipeline.tables.reading import Tables


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table."""

    number: int
    at: datetime
    """When it was written, by the clock of its writer."""


def span(tables: Tables, name: str) -> tuple[Version, Version]:
    """Return the oldest version that can be read completely, and the newest one.

    Maintenance removes files first, and the log of their versions later: a version in the log may lack files.

    Raises:
        StoreError: The table cannot be read.
    """
    newest = tables.open(name).handle
    try:
        there = {
            basename(found.path)
            for found in tables.folder(name).get_file_info(FileSelector("", recursive=True))
        }
        log = sorted(
            (Version(commit["version"], clock.at(commit["timestamp"])) for commit in newest.history()),
            key=lambda version: version.number,
        )
    except (DeltaError, OSError) as error:
        raise StoreError(f"the log of table {name} under {tables.root} cannot be read: {error}") from error
    # The newest is taken as it is: where it lacks files, `lagwise doctor` says so.
    first = bisect_left(log[:-1], 1, key=lambda version: _is_whole(tables, newest, version.number, there))
    return log[first], log[-1]


def _is_whole(tables: Tables, newest: DeltaTable, version: int, there: Collection[str]) -> int:
    """1 if the version has all its files, 0 otherwise."""
    try:
        handle = DeltaTable(
            newest.table_uri, version=version, storage_options=dict(tables.storage_options) or None
        )
        return int(all(basename(uri) in there for uri in handle.file_uris()))
    except (DeltaError, OSError):
        # What comes before it in the log is cut off, up to the next checkpoint.
        return 0
