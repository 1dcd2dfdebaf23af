"""A real Kafka on loopback: one KRaft node that is broker and controller. `cluster` has several nodes."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import final

from pipeline.errors import BrokerUnavailableError
from pipeline.local.embedded.config import HOST, free_port, server_properties
from pipeline.local.embedded.node import KafkaNode, PortTakenError, new_cluster_id
from pipeline.local.embedded.probe import BrokerProbe

_PORT_ATTEMPTS = 3
_HEAP_MB = 512


@final
class EmbeddedBroker(KafkaNode):
    """One Kafka 4.2 broker on loopback; a context manager.

    Attributes:
        data_dir: Folder of everything that the broker writes.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        own_address: Collection[str] = (),
        report: Callable[[str], None] | None = None,
        archive: Path | None = None,
        class_path: Sequence[Path] = (),
    ) -> None:
        """Prepare the broker without starting it.

        Args:
            data_dir: Folder to keep, whose data an earlier broker may have written; by default a temporary one, which
                is removed on exit.
            port: Port of the broker; by default a free one, which is chosen at the first start and kept.
            properties: Server properties that override those of `server_properties`.
            own_address: Names of further properties, whose value is the broker's own `bootstrap_servers`.
            report: Called with a line about each download.
            archive: File for a class data archive, which the broker writes when it exits.
            class_path: Jars in addition to Kafka's, such as those of classes that `properties` names.
        """
        folder = (data_dir or Path(tempfile.mkdtemp(prefix="lagwise-broker-"))).resolve()
        super().__init__(
            name="the embedded broker",
            data_dir=folder,
            heap_mb=_HEAP_MB,
            report=report,
            archive=archive,
            class_path=class_path,
        )
        self._temporary = data_dir is None
        self._port = port
        self._properties = dict(properties or {})
        self._own_address = tuple(own_address)

    def __enter__(self) -> "EmbeddedBroker":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the same through restarts.

        Raises:
            BrokerUnavailableError: The broker has never started, and has no port yet.
        """
        if self._port is None:
            raise BrokerUnavailableError("the embedded broker has not been started yet")
        return f"{HOST}:{self._port}"

    def start(self) -> None:
        """Start the broker, and return when clients can use it; at once if it is running.

        Raises:
            BrokerUnavailableError: It exited, or was not ready in time; the message has its last log lines.
            MissingDependencyError: There is no Java, or a jar cannot be downloaded.
        """
        if self.pid is not None:
            return
        self.stop()
        attempts = _PORT_ATTEMPTS if self._port is None else 1
        while True:
            attempts -= 1
            port = self._port or free_port()
            try:
                self._start_on(port)
            except PortTakenError:
                if attempts:
                    continue
                raise
            self._port = port
            return

    def close(self) -> None:
        """Stop the broker, and remove a temporary folder."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _start_on(self, port: int) -> None:
        properties = server_properties(
            data_dir=self.data_dir,
            port=port,
            controller_port=free_port(avoid=frozenset({port})),
            overrides={**self._properties, **dict.fromkeys(self._own_address, f"{HOST}:{port}")},
        )
        self._prepare(properties, cluster_id=new_cluster_id())
        self._launch()
        probe = BrokerProbe(port)
        self._wait_until(lambda: bool(probe.broker_ids(self.cluster_id)))
