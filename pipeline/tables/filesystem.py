"""Arrow's file systems for the files under a root: a local folder, S3, Azure, or another object store.

Only delta-rs commits, and it writes a version only if that version does not exist. Files go through Arrow's own file
systems. The one of deltalake is written in Python: it does not accept the buffers of pyarrow's Parquet writer, and
Arrow's threads release its files after a read has returned, so a process that exits at that moment is aborted.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from pipeline.config.object_stores import AZURE, S3, store_of
from pipeline.tables import azure
from pipeline.tables.storage import folder_of

_S3_ARGUMENTS = {
    "access_key": "access_key_id",
    "secret_key": "secret_access_key",
    "session_token": "session_token",
    "region": "region",
    "endpoint_override": "endpoint_url",
}


def check_login(uri: str, storage_options: Mapping[str, str]) -> None:
    """Return if the clients of a store know how to log in; without that some ask the metadata of the machine.

    Raises:
        StoreError: They do not, or would log in differently.
    """
    if store_of(uri) is AZURE:
        azure.arguments(uri, storage_options)


def files_at(uri: str, storage_options: Mapping[str, str]) -> FileSystem:
    """Return the file system rooted at a place; paths are relative to it.

    Args:
        uri: A path or URL, such as that of a table.
        storage_options: Of delta-rs, secrets resolved.
    """
    own = arrows_own(uri, storage_options)
    return PyFileSystem(DeltaStorageHandler(uri, dict(storage_options))) if own is None else own


def arrows_own(
    uri: str, storage_options: Mapping[str, str], *, request_timeout_s: float = 30.0, attempts: int = 10
) -> SubTreeFileSystem | None:
    """Return Arrow's own file system as `files_at` does; None if there is none and deltalake must serve.

    Args:
        uri: A path or URL.
        storage_options: Of delta-rs, secrets resolved.
        request_timeout_s: Time after which a request to an object store is retried.
        attempts: Attempts before the request fails.
    """
    folder = folder_of(uri)
    if folder is not None:
        return SubTreeFileSystem(str(folder.absolute()), LocalFileSystem())
    kind = store_of(uri)
    if kind is S3:
        place = urlsplit(uri)
        store = _s3(request_timeout_s, attempts, **_settings(storage_options))
        return SubTreeFileSystem(f"{place.netloc}{place.path}", store)
    if kind is AZURE:
        return SubTreeFileSystem(azure.container_of(uri), _azure(**azure.arguments(uri, storage_options)))
    return None


@lru_cache(maxsize=4)
def _s3(request_timeout_s: float, attempts: int, **settings: Any) -> FileSystem:
    # Who reads a folder needs no Arrow that knows S3.
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415

    # Kept, for it keeps connections. A small file is one put, and not an upload in parts, which a kill leaves behind.
    return S3FileSystem(
        connect_timeout=min(request_timeout_s, 5.0),
        request_timeout=request_timeout_s,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=attempts),
        allow_delayed_open=True,
        **settings,
    )


@lru_cache(maxsize=4)
def _azure(**arguments: str) -> FileSystem:
    from pyarrow.fs import AzureFileSystem  # noqa: PLC0415

    return AzureFileSystem(**arguments)


def _settings(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Arguments for Arrow; the SDK of AWS looks for missing credentials itself (profile, web identity)."""
    values = {**S3.around(os.environ), **S3.given(storage_options)}
    return {argument: values[option] for argument, option in _S3_ARGUMENTS.items() if option in values}
