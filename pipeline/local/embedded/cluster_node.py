"""One node of an embedded cluster: a broker or a controller."""

from collections.abc import Mapping
from pathlib import Path
from typing import final

from pipeline.local.embedded.cluster_config import NodeSettings
from pipeline.local.embedded.node import KafkaNode
from pipeline.local.embedded.probe import BrokerProbe

_HEAP_MB = 256
# The last line that Kafka logs of a start; of a controller, when it leads the quorum or follows who leads.
_STARTED = "Kafka Server started"


@final
class ClusterNode(KafkaNode):
    """A process that starts in two steps, so that several can start at the same time.

    Attributes:
        node_id: Kafka's id of the node.
        role: `broker` or `controller`.
        port: Where it listens: a broker for clients, a controller for the other nodes.
        advertised_port: The port that a broker tells clients to connect to; otherwise as `port`.
        internal_port: Where a broker listens for the other brokers; of a controller, its port.
    """

    def __init__(
        self,
        settings: NodeSettings,
        *,
        folder: Path,
        properties: Mapping[str, str],
        cluster_id: str,
    ) -> None:
        """Prepare, start nothing.

        Args:
            settings: Id, role and ports.
            folder: That of the cluster.
            properties: All server properties.
            cluster_id: What it becomes part of if its folder is new.
        """
        super().__init__(
            name=f"{settings.role} {settings.node_id} of the embedded cluster",
            data_dir=settings.data_dir(folder),
            heap_mb=_HEAP_MB,
            report=None,
        )
        self.node_id = settings.node_id
        self.role = settings.role
        self.port = settings.port
        self.advertised_port = settings.advertised_port
        self.internal_port = settings.internal_port
        self._properties = dict(properties)
        self._new_cluster_id = cluster_id

    def start(self) -> None:
        """Start and return when clients, or the other nodes, can use it; at once when it runs already.

        A broker can be used once a controller knows it, so at least one controller has to run.

        Raises:
            BrokerUnavailableError: It ended, or was not ready in time; the message has its last log lines.
            MissingDependencyError: No Java, or its jars cannot be had.
        """
        if self.pid is None:
            self.begin()
            self.wait_until_ready()

    def begin(self) -> None:
        """Start it and do not wait until it can be used.

        Raises:
            BrokerUnavailableError: The process could not be started.
            MissingDependencyError: No Java, or its jars cannot be had.
        """
        self.stop()
        self._prepare(self._properties, cluster_id=self._new_cluster_id)
        self._launch()

    def wait_until_ready(self) -> None:
        """Return when it can be used.

        Raises:
            BrokerUnavailableError: It ended, or was not ready in time; the message has its last log lines.
        """
        if self.role == "broker":
            probe = BrokerProbe(self.internal_port)
            self._wait_until(lambda: self.node_id in probe.broker_ids(self.cluster_id))
        else:
            self._wait_until(lambda: _STARTED in self._log())
