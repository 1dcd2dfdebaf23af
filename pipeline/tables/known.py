"""Store: what a process knows of its tables, so that it does not ask an object store for the same thing again.

A table is opened once. After that a look asks what was committed since, which takes two requests; opening it again
takes one for every commit since the last checkpoint, and so does each question for a transaction.
"""

from collections.abc import Callable, Mapping

from deltalake import DeltaTable

from pipeline.tables.stamp import Stamp, newest_stamp
from pipeline.tables.table_files import TableFiles, TableRows, files_of
from pipeline.tables.versions import refuse_newer

APP = "lagwise"
"""Name of the transactions that carry the number of a write."""


class KnownTable:
    """A table at the newest version that this process has seen, with what was asked about that version."""

    def __init__(self, name: str, handle: DeltaTable, storage_options: Mapping[str, str]) -> None:
        """Know no more than the version.

        Args:
            name: Of the table.
            handle: Opened just now (`reading.Tables.open`); at later versions after looks and commits.
            storage_options: Of delta-rs, secrets resolved.
        """
        self.handle = handle
        self.is_newest = True
        """False if others, or this process, may have committed since the last look."""
        self._is_fixed = False
        self._name, self._storage_options = name, storage_options
        self._version = handle.version()
        # Asked now, because maintenance may cut the log later.
        self._number: int | None = handle.transaction_version(APP) or -1
        self._is_readable = True
        self._files: TableFiles | None = None
        self._rows: TableRows | None = None
        self._stamp: tuple[Stamp | None] | None = None

    def look(self) -> bool:
        """Go to the newest version, and return True; False if the version is known to be that, or is committed from."""
        if self.is_newest or self._is_fixed:
            return False
        self.handle.update_incremental()
        self.is_newest = True
        if self.handle.version() != self._version:
            self._is_at(self.handle.version(), number=None)
            # A newer lagwise may have rewritten the table.
            self._is_readable = False
        return True

    def commit(self, number: int, write: Callable[[DeltaTable], None]) -> None:
        """Commit what follows the present version, at which the table stays meanwhile.

        Args:
            number: Of the write.
            write: Makes one commit, which is refused unless it follows the version of the handle.
        """
        version = self.handle.version() + 1
        self._is_fixed = True
        try:
            write(self.handle)
        finally:
            # Its outcome is unknown if it fails.
            self._is_fixed = self.is_newest = False
        # Not each kind of commit takes the handle along: the next look does, and finds the version that is known then.
        self.is_newest = self.handle.version() == version
        self._is_at(version, number=number)

    def _is_at(self, version: int, *, number: int | None) -> None:
        self._version, self._number = version, number
        self._files = self._rows = self._stamp = None

    @property
    def number(self) -> int:
        """Return the highest number of a write; -1 if there was none."""
        if self._number is None:
            self._number = self.handle.transaction_version(APP) or -1
        return self._number

    @property
    def files(self) -> TableFiles:
        """Its files.

        Raises:
            StoreError: A newer lagwise has written the table.
        """
        if not self._is_readable:
            refuse_newer(self._name, self.handle)
            self._is_readable = True
        if self._files is None:
            self._files = files_of(self._name, self.handle)
        return self._files

    @property
    def rows(self) -> TableRows:
        """Its rows; raises as `files` does."""
        if self._rows is None:
            self._rows = TableRows(self.files, self._storage_options)
        return self._rows

    @property
    def stamp(self) -> Stamp | None:
        """See `newest_stamp`."""
        if self._stamp is None:
            self._stamp = (newest_stamp(self.handle),)
        return self._stamp[0]
