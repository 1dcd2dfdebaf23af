"""A store that speaks S3's protocol, on this host: s3proxy over a folder, with conditional puts."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.local.embedded.config import free_port
from pipeline.local.jars import resolve
from pipeline.local.java import find_java
from tests.support.spark.answering import answers
from tests.support.waiting import wait_until

BUCKET = "lagwise"
_JARS = ("org.gaul:s3proxy:4.1.0", "com.fasterxml.jackson.core:jackson-annotations:2.21")
_IDENTITY, _CREDENTIAL = "local-identity", "local-credential"
_UP_WITHIN_S = 60.0


class ObjectStore:
    """One server, which can be stopped, and started again with what it held."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data" / BUCKET).mkdir(parents=True)
        (folder / "s3proxy.conf").write_text(
            f"s3proxy.endpoint={self.endpoint}\ns3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={_IDENTITY}\ns3proxy.credential={_CREDENTIAL}\n"
            f"jclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={folder / 'data'}\n",
            encoding="utf-8",
        )
        (folder / "logback.xml").write_text(
            '<configuration><root level="ERROR"/></configuration>', encoding="utf-8"
        )

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """Address on which it listens."""
        return self._port

    @property
    def options(self) -> dict[str, str]:
        """`tables.storage_options`."""
        return self.options_by(self.endpoint)

    def options_by(self, endpoint: str) -> dict[str, str]:
        """The same store for a client that reaches it by another address."""
        return {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": _IDENTITY,
            "AWS_SECRET_ACCESS_KEY": _CREDENTIAL,
            "AWS_REGION": "us-east-1",
        }

    def path(self, *names: str) -> Path:
        """The file that holds an object."""
        return self._folder.joinpath("data", BUCKET, *names)

    def start(self) -> None:
        """Return when it answers."""
        command = [
            *(str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dlogback.configurationFile={self._folder / 'logback.xml'}",
            *("-cp", ":".join(map(str, resolve(_JARS))), "org.gaul.s3proxy.Main"),
            *("--properties", str(self._folder / "s3proxy.conf")),
        ]
        with (self._folder / "output").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        wait_until(lambda: answers(self._port), what="the object store", within_s=_UP_WITHIN_S)

    def kill(self) -> None:
        """End it at once; what was written stays."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """A running store with an empty bucket, to the end of the block."""
    store = ObjectStore(folder)
    try:
        store.start()
        yield store
    finally:
        store.kill()
        shutil.rmtree(folder / "data", ignore_errors=True)
