"""One node of an embedded cluster: a broker or a controller."""

from collections.abc import Mapping
from pathlib import Path
from typing import final

from pipeline.local.embedded.cluster_config import NodeSettings
from pipeline.local.embedded.node import KafkaNode
from pipeline.local.embedded.probe import BrokerProbe

_HEAP_MB = 256
# The last log line of a start; of a controller, when it leads the quorum or follows the leader.
_STARTED = "Kafka Server started"


@final
class ClusterNode(KafkaNode):
    """A process that starts in two steps, so that several can start at the same time.

    Attributes:
        node_id: Kafka's id of the node.
        role: `broker` or `controller`.
        port: Port of its listener: of a broker for clients, of a controller for the other nodes.
        advertised_port: Port that a broker advertises to clients; of a controller, its port.
        internal_port: Port of a broker's listener for the other brokers; of a controller, its port.
    """

    def __init__(
        self,
        settings: NodeSettings,
        *,
        folder: Path,
        properties: Mapping[str, str],
        cluster_id: str,
    ) -> None:
        """Prepare the node without starting it.

        Args:
            settings: Id, role and ports.
            folder: Folder of the cluster.
            properties: All server properties.
            cluster_id: Cluster that a new folder becomes part of.
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
        """Start the node, and return when clients, or the other nodes, can use it; at once if it is running.

        A broker is ready when a controller knows it, so at least one controller has to run.

        Raises:
            BrokerUnavailableError: It exited, or was not ready in time; the message has its last log lines.
            MissingDependencyError: There is no Java, or a jar cannot be downloaded.
        """
        if self.pid is None:
            self.begin()
            self.wait_until_ready()

    def begin(self) -> None:
        """Start the node without waiting until it is ready.

        Raises:
            BrokerUnavailableError: The process could not be started.
            MissingDependencyError: There is no Java, or a jar cannot be downloaded.
        """
        self.stop()
        self._prepare(self._properties, cluster_id=self._new_cluster_id)
        self._launch()

    def wait_until_ready(self) -> None:
        """Return when it is ready.

        Raises:
            BrokerUnavailableError: It exited, or was not ready in time; the message has its last log lines.
        """
        if self.role == "broker":
            probe = BrokerProbe(self.internal_port)
            self._wait_until(lambda: self.node_id in probe.broker_ids(self.cluster_id))
        else:
            self._wait_until(lambda: _STARTED in self._log())
