"""A complete copy of the tables, made while a driver writes them; it needs only the files, and no driver.

The copy has one version of each table: the files of that version, which stay for `tables.retention_hours` after they
are replaced, and its log up to there. It leaves out newer commits and half-written files, the checkpoint, which only
numbers batches, and the driver's heartbeat.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileSystem

from pipeline.errors import MissingTableError, StoreError
from pipeline.tables.reading import Tables
from pipeline.tables.table_files import refuse_deletion_vectors

# `partition_lag` says from where records are read on, and so comes first: the other tables are then of its batch or
# newer ones, and what they hold already is folded once more. Decisions come before their history, and groups before
# theirs, so that no history lacks a row.
ORDER = (
    "partition_lag",
    "topic_offsets",
    "consumer_groups",
    "acks",
    "orders",
    "planner_state",
    "plan_state",
    "member_rates",
    "lag_history",
    "group_history",
    "recommendations",
    "quarantine",
)

_LOG = "_delta_log"
# `_last_checkpoint` is but a hint, and may name a newer one.
_LOG_FILE = re.compile(r"(\d{20})\.(?:json|checkpoint(?:\..+)?\.parquet)")
_ATTEMPTS = 3
_PIECE = 8 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A table in a backup."""

    name: str
    version: int
    bytes_: int
    """Size of the data files."""


def back_up(tables: Tables, target: Path) -> Iterator[Copied]:
    """Copy all tables into a new folder, which exists as soon as the last one is in it; each table when it is there.

    Raises:
        MissingTableError: There is no table.
        StoreError: The folder exists, or another backup writes into it, or a table cannot be read, or has deletion
            vectors, or changes faster than it can be copied.
    """
    _check_new(target)
    with _alone(target):
        # Another one may have ended meanwhile.
        _check_new(target)
        yield from _copied(tables, target)


def _check_new(target: Path) -> None:
    if target.exists():
        raise StoreError(f"{target} exists already; name a folder that does not, a new one for each backup")


def _copied(tables: Tables, target: Path) -> Iterator[Copied]:
    for name in ORDER:
        with suppress(MissingTableError):
            refuse_deletion_vectors(name, tables.open(name).handle)
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    copied = []
    for name in ORDER:
        try:
            copied.append(_copy(tables, name, unfinished / name))
        except MissingTableError:
            # An earlier version has not made it.
            if name == ORDER[0]:
                raise
        else:
            yield copied[-1]
    gone = [one.name for one in copied if not (unfinished / one.name).is_dir()]
    if gone:
        raise StoreError(
            f"{', '.join(gone)} under {unfinished} were removed during the backup; find out by what, and repeat it"
        )
    unfinished.rename(target)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Keep other backups out of a folder: each removes what an unfinished one has left."""
    lock = target.with_name(f"{target.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    # NFS locks only files that are open for writing, so no folders.
    with lock.open("a") as file:
        if not _is_locked(file):
            raise StoreError(f"another backup into {target} is running; wait, or name another folder")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _is_locked(file: IO[str]) -> bool:
    """Lock the file, if nobody else has and it is still there."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks. The tables are looked for before the end, too.
        return True
    return os.fstat(file.fileno()).st_nlink > 0


def _copy(tables: Tables, name: str, target: Path) -> Copied:
    for _ in range(_ATTEMPTS):
        shutil.rmtree(target, ignore_errors=True)
        table = tables.open(name)
        sizes = _sizes(table.handle)
        try:
            _copy_files(tables.folder(name), table.version, sizes, target)
        except FileNotFoundError:
            # Maintenance has removed it meanwhile.
            continue
        if _is_copy(target, table.version, sizes):
            return Copied(name=name, version=table.version, bytes_=sum(sizes.values()))
    raise StoreError(
        f"table {name} under {tables.root} changes faster than it can be copied: its files are kept only for "
        "tables.retention_hours; raise it, or stop the driver during the backup"
    )


def _sizes(handle: DeltaTable) -> dict[str, int]:
    """Data files by their path below the table, with their sizes in bytes."""
    added = pa.table(handle.get_add_actions(flatten=True))
    return dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))


def _copy_files(folder: FileSystem, version: int, sizes: dict[str, int], target: Path) -> None:
    log = {
        f"{_LOG}/{found.base_name}": found.mtime_ns
        for found in folder.get_file_info(FileSelector(_LOG))
        if (named := _LOG_FILE.fullmatch(found.base_name)) and int(named[1]) <= version
    }
    for path in (*log, *sizes):
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with folder.open_input_stream(path) as source, file.open("wb") as copy:
            shutil.copyfileobj(source, copy, _PIECE)
        modified_ns = log.get(path)
        if modified_ns is not None:
            # For Spark's TIMESTAMP AS OF a version is as old as its file.
            os.utime(file, ns=(modified_ns, modified_ns))


def _is_copy(target: Path, version: int, sizes: dict[str, int]) -> bool:
    """Whether the copy can be opened and is the version that was meant: parts of its log may have been cut off."""
    commits = sorted(int(file.stem) for file in (target / _LOG).glob("*.json"))
    if commits != list(range(version + 1 - len(commits), version + 1)):
        return False
    try:
        copy = Tables(str(target.parent)).open(target.name)
    except StoreError:
        return False
    is_same = copy.version == version and _sizes(copy.handle) == sizes
    return is_same and all((target / path).stat().st_size == size for path, size in sizes.items())
