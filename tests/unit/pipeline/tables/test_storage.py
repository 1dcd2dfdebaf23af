"""Which failures say that storage cannot be written, and when a disk counts as full."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import StreamingQueryException

from pipeline.errors import BrokerUnavailableError, StorageUnavailableError, StoreError
from pipeline.tables import storage

PANIC = (
    "Failed to parse parquet: External: Generic LocalFileSystem error: Unable to copy data to file: "
    "No space left on device (os error 28)"
)


def wrapped(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        DeltaError(PANIC),
        OSError(errno.EROFS, "Read-only file system"),
        StoreError("table t at /x cannot be opened: Input/output error (os error 5)"),
        StreamingQueryException("it broke\njava.io.IOException: No space left on device\n at x"),
        OSError("Generic S3 error: Error performing PUT: operation timed out"),
        OSError(
            "Generic S3 error: Error performing PUT http://x/y in 3s - Server returned error response: 507"
        ),
        OSError(
            "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing GET http://x/y in 180.9s, after 5 retries\n"
            "    \x1b[31m↳\x1b[0m 180s  - HTTP error\n     \x1b[31m↳\x1b[0m error sending request\n"
            "      \x1b[31m↳\x1b[0m operation timed out"
        ),
        wrapped(ValueError("a task failed"), OSError(errno.EDQUOT, "Disk quota exceeded")),
        StorageUnavailableError("the disk is full"),
    ],
)
def test_failure_of_storage_is_known_in_one_line(error: Exception) -> None:
    why = storage.trouble_of(error)

    assert why
    assert "\n" not in why


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a mistake"),
        StoreError("the tables belong to cluster 'a'"),
        FileNotFoundError(errno.ENOENT, "No such file"),
        PermissionError(errno.EACCES, "Permission denied"),
        wrapped(BrokerUnavailableError("no answer"), OSError(errno.ETIMEDOUT, "timed out")),
    ],
)
def test_other_failures_are_none_of_it(error: Exception) -> None:
    assert storage.trouble_of(error) is None


@pytest.mark.parametrize(
    "request_",
    [
        "PUT http://s3:9000/b/t/_delta_log/00000000000000000512.json in 3.1ms",
        "PUT http://s3:9500/b/t/_delta_log/00000000000000000001.json in 3.1ms",
        "GET http://s3:9000/b/t/part-00000-1a2b3c4d-0000-4513-a502-00000000000a-c000.parquet in 3.1ms",
        "GET http://s3:9000/connections/t/_delta_log/_last_checkpoint in 532.431ms, after 0 retries",
    ],
)
@pytest.mark.parametrize(
    "answer", ["400 Bad Request: <Code>InvalidRequest</Code>", "404 Not Found: <Code>NoSuchBucket</Code>"]
)
def test_address_and_duration_of_a_request_say_nothing_of_an_outage(request_: str, answer: str) -> None:
    told = f"Generic S3 error: Error performing {request_} - Server returned non-2xx status code: "

    assert storage.trouble_of(OSError(told + answer)) is None
    assert storage.trouble_of(OSError(told + "503 Service Unavailable: <Code>SlowDown</Code>")) is not None
    arrow = "\n  \x1b[31m↳\x1b[0m "
    told = f"Kernel error -> Generic S3 error{arrow}{told.removeprefix('Generic S3 error: ').removesuffix(': ')}{arrow}"
    assert storage.trouble_of(OSError(f"{told}529 <unknown status code>{arrow}busy")) is not None
    assert storage.trouble_of(OSError(f"{told}{answer.replace(': ', arrow)}")) is None


def test_folder_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    assert storage.trouble(str(tmp_path)) is None
    assert storage.trouble(tmp_path.as_uri()) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "When reading information for key 'a' in bucket 'b': AWS Error SLOW_DOWN during HeadObject operation: x",
        "AWS Error SERVICE_UNAVAILABLE during PutObject operation: x",
        "AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.",
        "AWS Error NETWORK_CONNECTION during PutObject operation: curlCode: 7, Couldn't connect to server",
        "AWS Error INTERNAL_FAILURE during GetObject operation: We encountered an internal error.",
        "UploadFrom failed for 'http://x/a/c/f'. Azure Error: [ServerBusy] 503 The server is busy.\nRequest ID: 1",
        "GetProperties failed for 'http://x/a/c/f'. Azure Error: [] Fail to get a new connection for: http://x. Could not connect",
    ],
)
def test_store_that_does_not_answer_arrow_is_an_outage(text: str) -> None:
    assert storage.trouble_of(OSError(text)) is not None
    assert storage.trouble_of(OSError("AWS Error ACCESS_DENIED during PutObject operation: x")) is None
    assert storage.trouble_of(OSError("x failed. Azure Error: [BlobNotFound] 404 It does not exist.")) is None


@pytest.mark.parametrize(
    "text",
    [
        "AWS Error ACCESS_DENIED during PutObject operation: x",
        "AWS Error UNKNOWN (HTTP status 403) during PutObject operation: Unable to parse ExceptionName: QuotaExceeded",
        "UploadFrom failed for 'http://x/a/c/f'. Azure Error: [AuthorizationPermissionMismatch] 403 x\nRequest ID: 1",
        'Server returned non-2xx status code: 403 Forbidden: <?xml version="1.0"?>\n<Error><Code>AccessDenied</Code>',
    ],
)
def test_store_that_refuses_writes_is_an_outage_only_for_who_has_written_there(text: str) -> None:
    assert storage.trouble_of(OSError(text), has_been_written=True) is not None
    assert storage.trouble_of(OSError(text)) is None


def test_object_store_is_not_looked_at() -> None:
    assert storage.trouble("s3a://bucket/tables") is None
    storage.check_room("s3a://bucket/tables")


@pytest.mark.parametrize(
    ("free_bytes", "flags", "words"),
    [
        (storage.LEAST_FREE_BYTES - 4096, 0, "is full: 64 MiB are free"),
        (0, 0, "is full: 0 MiB are free"),
        (storage.LEAST_FREE_BYTES, os.ST_RDONLY, "mounted read-only"),
    ],
)
def test_no_write_begins_without_room(
    free_bytes: int, flags: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(f_bavail=free_bytes // 4096, f_frsize=4096, f_flag=flags)
    monkeypatch.setattr(storage.os, "statvfs", lambda _folder: found)

    with pytest.raises(StorageUnavailableError, match=words):
        storage.check_room(str(tmp_path))
