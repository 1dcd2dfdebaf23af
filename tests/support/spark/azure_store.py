"""A store that speaks Azure's protocol, on this host: Azurite, which npm brings, in memory."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyarrow.fs import AzureFileSystem

from pipeline.local.embedded.config import free_port
from tests.support.spark.answering import answers
from tests.support.waiting import wait_until

CONTAINER = "lagwise"
_PACKAGE, _VERSION = "azurite", "3.37.0"
ACCOUNT, _KEY = "local", "bG9jYWwta2V5LW9mLXRoZS10ZXN0cw=="
_UP_WITHIN_S = 60.0


class AzureStore:
    """A running server with an empty container."""

    def __init__(self, port: int) -> None:
        """Make the container, as soon as the server knows the account, which is after it answers.

        Args:
            port: Address on which the server listens.
        """
        self.port = port
        wait_until(self._has_container, what="a container of Azurite", within_s=_UP_WITHIN_S)

    @property
    def options(self) -> dict[str, str]:
        """`tables.storage_options`."""
        return self.options_by(f"http://127.0.0.1:{self.port}")

    def options_by(self, endpoint: str) -> dict[str, str]:
        """The same store for a client that reaches it by another address."""
        return {
            "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        }

    def _has_container(self) -> bool:
        host = f"127.0.0.1:{self.port}"
        store = AzureFileSystem(
            account_name=ACCOUNT,
            account_key=_KEY,
            blob_storage_authority=host,
            dfs_storage_authority=host,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )
        try:
            store.create_dir(CONTAINER)
        except OSError:
            return False
        return True


@contextmanager
def azure_store(folder: Path) -> Iterator[AzureStore]:
    """A running store with an empty container, to the end of the block."""
    port = free_port()
    command = [
        *("node", str(_program()), "--inMemoryPersistence", "--blobPort", str(port)),
        *("--silent", "--disableTelemetry", "--skipApiVersionCheck"),
    ]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{_KEY}"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: process.poll() is not None or answers(port), what="Azurite", within_s=_UP_WITHIN_S)
        assert process.poll() is None, (folder / "output").read_text(encoding="utf-8")
        yield AzureStore(port)
    finally:
        process.kill()
        process.wait()


def _program() -> Path:
    """The server, which npm fetches once, in half a minute."""
    home = Path(sys.prefix) / "tools" / f"{_PACKAGE}-{_VERSION}"
    if not home.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.fail("npm is missing, which brings Azurite: install Node.js 20, https://nodejs.org")
        home.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=home.parent) as folder:
            unfinished = Path(folder) / _PACKAGE
            subprocess.run(
                [
                    *(
                        npm,
                        "install",
                        "--prefix",
                        str(unfinished),
                        "--no-audit",
                        "--no-fund",
                        "--ignore-scripts",
                    ),
                    f"{_PACKAGE}@{_VERSION}",
                ],
                check=True,
                capture_output=True,
            )
            unfinished.rename(home)
    return home / "node_modules" / _PACKAGE / "dist" / "src" / "blob" / "main.js"
