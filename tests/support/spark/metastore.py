"""A Hive metastore on loopback, of pyspark's own jars: its server in a process, its database (Derby) in a folder."""

import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from pipeline.local.embedded.config import HOST, free_port
from pipeline.local.jars import pyspark_jars
from pipeline.local.java import find_java
from tests.support.waiting import wait_until

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR")
_STARTED_WITHIN_S = 120.0
_ENDED_WITHIN_S = 30.0


class Metastore:
    """Runs from the beginning to the end of the block."""

    def __init__(self, folder: Path) -> None:
        """Nothing is started.

        Args:
            folder: Everything that it writes is below.
        """
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """For `hive.metastore.uris`."""
        return f"thrift://{HOST}:{self._port}"

    def __enter__(self) -> "Metastore":
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self._folder / 'db'};create=true",
            "hive.metastore.warehouse.dir": str(self._folder / "warehouse"),
            # A new database has no tables of the metastore's own yet.
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            # It takes a library that Spark does not ship.
            "hive.async.log.enabled": "false",
        }
        options = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    str(find_java()),
                    *_JAVA,
                    "-cp",
                    f"{pyspark_jars()}/*",
                    _MAIN,
                    "-p",
                    str(self._port),
                    *options,
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(self._answers, what="the metastore", within_s=_STARTED_WITHIN_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_ENDED_WITHIN_S)

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8")[-4000:]
        with suppress(OSError):
            socket.create_connection((HOST, self._port), timeout=1).close()
            return True
        return False
