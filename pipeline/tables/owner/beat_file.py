"""The file of the heartbeat: in the folder of the tables, or an object of S3 or Azure; other stores have none."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from deltalake._internal import DeltaFileSystemHandler
from pyarrow.fs import FileSystem

from pipeline.config.object_stores import AZURE, store_of
from pipeline.tables.filesystem import arrows_own, check_login, files_at
from pipeline.tables.storage import folder_of

FILE_NAME = "_owner.json"
_LENGTH_BYTES = 8192
_MOST_BYTES = 2**20
_TIMEOUT_S = 5.0


class BeatFile:
    """Read whole, and replaced whole: no reader sees half of it.

    Arrow asks S3 for the length first and then for the bytes, so there all have one length. On Azure it empties a file
    before it writes it, and takes no timeout: there delta-rs reads and replaces the file, without Arrow's streams in
    Python, which cannot write there (`tables.filesystem`).
    """

    def __init__(self, root: str, storage_options: Mapping[str, str]) -> None:
        """Nothing is opened yet.

        Args:
            root: Of the tables.
            storage_options: Of delta-rs, secrets resolved.
        """
        self.place = f"{root.rstrip('/')}/{FILE_NAME}"
        self._root, self._options = root, storage_options
        self._folder, self._store_kind = folder_of(root), store_of(root)

    @property
    def is_kept(self) -> bool:
        """Return whether a driver writes such a file there."""
        return self._folder is not None or self._store_kind is not None

    def read(self) -> str | None:
        """Return its text; None without a file.

        Raises:
            OSError: It cannot be read.
            UnicodeDecodeError: It is damaged.
        """
        if not self.is_kept:
            return None
        try:
            if self._folder is not None:
                return (self._folder / FILE_NAME).read_text(encoding="utf-8")
            if self._store_kind is AZURE:
                return bytes(self._by_delta_rs().open_input_file(FILE_NAME).read(_MOST_BYTES)).decode()
            with self._store().open_input_stream(FILE_NAME) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None

    def write(self, text: str, *, by: str) -> None:
        """Replace it.

        Args:
            text: Its new contents.
            by: A unique name of the writer.

        Raises:
            OSError: It cannot be written.
        """
        if self._folder is not None:
            _replace(self._folder / FILE_NAME, text, by)
        elif self._store_kind is AZURE:
            # Closed only when all is written: the file is what was written before it is closed.
            file: Any = self._by_delta_rs().open_output_stream(FILE_NAME)
            file.write(text.encode())
            file.close()
        elif self.is_kept:
            # One request, which replaces the object as a whole.
            with self._store().open_output_stream(FILE_NAME) as stream:
                stream.write(text.encode().ljust(_LENGTH_BYTES))

    def _by_delta_rs(self) -> DeltaFileSystemHandler:
        check_login(self._root, self._options)
        limits = {
            "timeout": f"{_TIMEOUT_S:.0f}s",
            "connect_timeout": f"{_TIMEOUT_S:.0f}s",
            "max_retries": "0",
        }
        # It asks for a size that it does not know, and keeps Python's lock meanwhile; the file may be smaller.
        return DeltaFileSystemHandler(self._root, {**self._options, **limits}, {FILE_NAME: _MOST_BYTES})

    def _store(self) -> FileSystem:
        # What hangs for longer is no heartbeat, and keeps a driver from its end.
        own = arrows_own(self._root, self._options, request_timeout_s=_TIMEOUT_S, attempts=1)
        return own or files_at(self._root, self._options)


def _replace(file: Path, text: str, by: str) -> None:
    # A name of this driver's own: two of them must not write into one file before they move it.
    unfinished = file.with_name(f"{FILE_NAME}.{by.replace('/', '-')}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError:
        # What a full disk has taken of it is in the way of others.
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
