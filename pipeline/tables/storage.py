"""Storage: whether the tables can be written now, and which failures mean that they cannot.

A full disk, a read-only mount and a store that does not answer are outages, as Kafka's are: they end, and the batch is
repeated. lagwise checks for them before each write, because some libraries do not survive a write that fails half way:
the writer of Parquet files panics on a full disk.
"""

import errno
import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pipeline.config.places import is_folder_of_host
from pipeline.errors import (
    PipelineError,
    StorageRefusedError,
    StorageUnavailableError,
    StoreError,
    without_queries,
)

LEAST_FREE_BYTES = 64 * 2**20
"""A batch of 300,000 partitions writes about this much; with less left, a disk is full for many purposes."""

_SAYS_SO = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Stale file handle"
    r"|Transport endpoint is not connected|os error (?:5|28|30|107|110|116|122)\b"
    r"|(?:S3|Azure|GCS|HTTP|object store|Microsoft\w*|Google\w*) error\b.*(?:timed? ?out|error sending request"
    r"|connection|Service ?Unavailable|SlowDown|(?:status code|error response):? 5\d\d\b)"
    # Arrow's words.
    r"|Azure Error: \[\w*\] (?:5\d\d\b|Fail to get a new connection|.*(?:timed? ?out|connection))"
    r"|AWS Error (?:NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT"
    r"|REQUEST_TIME_TOO_SKEWED|UNKNOWN \(HTTP status 5\d\d\))|AWS Error .*\b(?:ExpiredToken|EXPIRED_TOKEN)",
    re.IGNORECASE,
)
_CAUSES = re.compile(r"\s*\n\s*(?:\x1b\[[0-9;]*m)*↳(?:\x1b\[[0-9;]*m)*\s*")
"""Line breaks before the causes that delta-rs lists below an error."""
_REQUEST = re.compile(r"Error performing \w+ \S+ in \S+")
"""The request in an error of delta-rs. Words and numbers in its address and duration say nothing about the failure."""
_REFUSES = re.compile(
    r"403 Forbidden|<Code>(?:AccessDenied|AllAccessDisabled|QuotaExceeded)</Code>"
    r"|AWS Error (?:ACCESS_DENIED|UNKNOWN \(HTTP status 403\))|Azure Error: \[\w*\] 403\b"
)
_NUMBERS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT),
}
_MOST_TEXT = 200


def trouble(place: str) -> str | None:
    """Return why a folder cannot be written now; None if it can, or if it is not a folder of this host.

    Writes a small file, and removes it.
    """
    folder = folder_of(place)
    if folder is None:
        return None
    probe = folder / f"_probe.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        full = why_full(place)
        if full is not None:
            return full
        with probe.open("wb") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror or error}"
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return None


def why_full(place: str) -> str | None:
    """Return why the disk of a folder has no room for a batch; None if it has, or if the folder is not local."""
    folder = folder_of(place)
    if folder is None:
        return None
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    free = found.f_bavail * found.f_frsize
    if free >= LEAST_FREE_BYTES:
        return None
    return (
        f"the disk of {folder} is full: {free / 2**20:.0f} MiB are free, and a batch may take "
        f"{LEAST_FREE_BYTES / 2**20:.0f} MiB; make room"
    )


def check_room(place: str) -> None:
    """Return if a write has a chance.

    Raises:
        StorageUnavailableError: The disk is full, or read-only.
    """
    why = why_full(place) or _why_read_only(place)
    if why is not None:
        raise StorageUnavailableError(why)


def _why_read_only(place: str) -> str | None:
    folder = folder_of(place)
    with suppress(OSError):
        if folder is not None and os.statvfs(folder).f_flag & os.ST_RDONLY:
            return f"{folder} cannot be written: its file system is mounted read-only"
    return None


def trouble_of(error: BaseException, *, has_been_written: bool = False) -> str | None:
    """The trouble with the storage that a failure reports, in one line; None if it reports none.

    Args:
        error: The failure.
        has_been_written: Whether this process has written to the tables. If so, a store that now refuses writes (a
            policy, a quota) is read-only, as a disk may be; if not, the key may be wrong.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, StorageUnavailableError):
            return str(seen)
        if has_been_written and isinstance(seen, StorageRefusedError):
            return str(seen)
        if isinstance(seen, PipelineError) and not isinstance(seen, StoreError):
            # Of Kafka, of another driver: what led to it does not matter.
            return None
        if isinstance(seen, OSError) and seen.errno in _NUMBERS:
            return _line(str(seen))
        for line in _CAUSES.sub(" ", str(seen)).splitlines():
            told = _REQUEST.sub("", line)
            if _SAYS_SO.search(told) or (has_been_written and _REFUSES.search(told)):
                return _line(line)
        seen = seen.__cause__ or seen.__context__
    return None


def folder_of(place: str) -> Path | None:
    """The folder of this host that a place names; None for an object store."""
    if not is_folder_of_host(place):
        return None
    return Path(url2pathname(urlsplit(place).path)) if "://" in place else Path(place)


def _line(text: str) -> str:
    return " ".join(without_queries(text).split())[-_MOST_TEXT:]
