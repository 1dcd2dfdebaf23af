"""A real Kafka of several KRaft nodes on loopback: brokers, and separate controllers.

    <data_dir>/cluster.json                             its id, and the numbers of its nodes
    <data_dir>/controller-101 …  broker-1  broker-2 …   one for each node, see `pipeline.local.embedded.node`

Every broker has two listeners: CLIENT for clients, which may be advertised under the port of a proxy, and INTERNAL for
the other brokers and for clients that bypass the proxy.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import final

from pipeline.errors import BrokerUnavailableError
from pipeline.local.embedded.cluster_config import choose_settings, node_properties
from pipeline.local.embedded.cluster_node import ClusterNode
from pipeline.local.embedded.config import HOST
from pipeline.local.embedded.node import PortTakenError, new_cluster_id
from pipeline.local.embedded.probe import BrokerProbe

_PORT_ATTEMPTS = 3
_SHAPE_FILE = "cluster.json"
_KNOWN_WITHIN_S = 60.0
# Brokers do not announce that they know one another.
_LOOK_EVERY_S = 0.05


@final
class EmbeddedCluster:
    """Kafka 4.2 brokers 1 to N and controllers from 101 on, on loopback; a context manager.

    Attributes:
        data_dir: Folder of everything that the nodes write, one folder for each.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        controllers: int = 1,
        data_dir: Path | None = None,
        properties: Mapping[str, str] | None = None,
        advertised_ports: Mapping[int, int] | None = None,
    ) -> None:
        """Prepare the cluster without starting it.

        Args:
            nodes: Number of brokers.
            controllers: Number of controllers.
            data_dir: Folder to keep, whose data an earlier cluster of the same nodes may have written; by default a
                temporary one, which is removed on exit.
            properties: Server properties of all nodes that override those of `node_properties`.
            advertised_ports: Advertised port by broker id, where it is that of a proxy.
        """
        self.data_dir = (data_dir or Path(tempfile.mkdtemp(prefix="lagwise-cluster-"))).resolve()
        self._temporary = data_dir is None
        self._size = (nodes, controllers)
        self._properties = dict(properties or {})
        self._advertised_ports = dict(advertised_ports or {})
        self._nodes: tuple[ClusterNode, ...] = ()

    def __enter__(self) -> "EmbeddedCluster":
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
    def nodes(self) -> tuple[ClusterNode, ...]:
        """Controllers, then brokers, by id.

        Raises:
            BrokerUnavailableError: The cluster has never started.
        """
        if not self._nodes:
            raise BrokerUnavailableError("the embedded cluster has not been started yet")
        return self._nodes

    @property
    def brokers(self) -> tuple[ClusterNode, ...]:
        """Brokers by id; errors as `nodes`."""
        return tuple(node for node in self.nodes if node.role == "broker")

    @property
    def controllers(self) -> tuple[ClusterNode, ...]:
        """Controllers by id; errors as `nodes`."""
        return tuple(node for node in self.nodes if node.role == "controller")

    def node(self, node_id: int) -> ClusterNode:
        """The broker or controller with this id; errors as `nodes`."""
        return next(node for node in self.nodes if node.node_id == node_id)

    @property
    def bootstrap_servers(self) -> str:
        """Advertised `host:port` of every broker, the same through restarts; errors as `nodes`."""
        return ",".join(f"{HOST}:{broker.advertised_port}" for broker in self.brokers)

    @property
    def internal_servers(self) -> str:
        """`host:port` of every broker for clients that bypass proxies; errors as `nodes`."""
        return ",".join(f"{HOST}:{broker.internal_port}" for broker in self.brokers)

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster; errors as `nodes`."""
        return self.nodes[0].cluster_id

    def start(self) -> None:
        """Start the nodes that are not running, and return when every broker knows all brokers.

        Raises:
            BrokerUnavailableError: A node exited, or was not ready in time; or the folder is that of other nodes.
            MissingDependencyError: There is no Java, or a jar cannot be downloaded.
        """
        if self._nodes:
            self._start(self._nodes)
            return
        cluster_id = self._given_cluster_id()
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            nodes = self._new_nodes(cluster_id)
            try:
                self._start(nodes)
            except PortTakenError:
                if attempt == _PORT_ATTEMPTS:
                    raise
            else:
                self._nodes = nodes
                return

    def stop(self) -> None:
        """Stop all nodes as an operator would. Data and ports stay."""
        # Before it exits, a broker asks a controller to move its leaders elsewhere.
        _together(ClusterNode.stop, [node for node in self._nodes if node.role == "broker"])
        _together(ClusterNode.stop, self._nodes)

    def close(self) -> None:
        """Stop the cluster, and remove a temporary folder."""
        if self._temporary:
            _together(_kill, self._nodes)
            shutil.rmtree(self.data_dir, ignore_errors=True)
        else:
            self.stop()

    def _new_nodes(self, cluster_id: str) -> tuple[ClusterNode, ...]:
        brokers, controllers = self._size
        settings = choose_settings(
            brokers=brokers, controllers=controllers, advertised_ports=self._advertised_ports
        )
        return tuple(
            ClusterNode(
                one,
                folder=self.data_dir,
                properties=node_properties(
                    one, folder=self.data_dir, nodes=settings, overrides=self._properties
                ),
                cluster_id=cluster_id,
            )
            for one in settings
        )

    def _start(self, nodes: tuple[ClusterNode, ...]) -> None:
        new = [node for node in nodes if node.pid is None]
        try:
            _together(ClusterNode.begin, new)
            # Controllers come first: without one, no broker gets ready.
            for node in new:
                node.wait_until_ready()
            _wait_until_known([node for node in nodes if node.role == "broker"])
        except BaseException:
            _together(_kill, new)
            raise

    def _given_cluster_id(self) -> str:
        """The id in the folder; a new folder gets one, which is stored before its first use."""
        brokers, controllers = self._size
        file = self.data_dir / _SHAPE_FILE
        wanted = {"brokers": brokers, "controllers": controllers}
        if not file.is_file():
            self.data_dir.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**wanted, "cluster_id": new_cluster_id()}), encoding="utf-8")
        found = json.loads(file.read_text(encoding="utf-8"))
        if {**found, **wanted} != found:
            raise BrokerUnavailableError(
                f"{self.data_dir} holds a cluster of {found['brokers']} brokers and {found['controllers']} "
                f"controllers, not of {brokers} and {controllers}: start it with those numbers, or name another "
                "folder"
            )
        return str(found["cluster_id"])


def _wait_until_known(brokers: Sequence[ClusterNode]) -> None:
    """Return when every running broker answers and knows all of them."""
    probes = [BrokerProbe(broker.internal_port) for broker in brokers]
    wanted = {broker.node_id for broker in brokers}
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while any(not wanted <= probe.broker_ids(brokers[0].cluster_id) for probe in probes):
        if time.monotonic() > deadline:
            raise BrokerUnavailableError(
                f"brokers {sorted(wanted)} did not all know one another within {_KNOWN_WITHIN_S:.0f} s"
            )
        time.sleep(_LOOK_EVERY_S)


def _together(action: Callable[[ClusterNode], None], nodes: Sequence[ClusterNode]) -> None:
    """Run the action on all nodes at the same time; raise the first error when all are done."""
    with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as pool:
        list(pool.map(action, nodes))


def _kill(node: ClusterNode) -> None:
    # It may have exited by itself.
    with suppress(BrokerUnavailableError, ProcessLookupError):
        node.kill()
    node.stop()
