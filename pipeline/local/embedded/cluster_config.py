"""Settings of the nodes of an embedded cluster: ids, ports, folders, server.properties."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.local.embedded.config import HOST, common_properties, free_ports

# Far enough above the ids of brokers for benchmarks with many brokers.
_FIRST_CONTROLLER_ID = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Settings of one node.

    Attributes:
        node_id: Kafka's id of the node: brokers count from 1, controllers from 101.
        role: Each node has one role only, so that no broker takes a controller down with it.
        port: Port of its listener: of a broker for clients, of a controller for the other nodes.
        advertised_port: Port that a broker advertises to clients; of a controller, its port.
        internal_port: Port of a broker's listener for the other brokers; of a controller, its port.
    """

    node_id: int
    role: Literal["broker", "controller"]
    port: int
    advertised_port: int
    internal_port: int

    def data_dir(self, folder: Path) -> Path:
        """Folder of the node in the folder of the cluster."""
        return folder / f"{self.role}-{self.node_id}"


def choose_settings(
    *, brokers: int, controllers: int, advertised_ports: Mapping[int, int]
) -> tuple[NodeSettings, ...]:
    """Settings of all nodes on free ports, controllers first.

    Args:
        brokers: Number of brokers.
        controllers: Number of controllers.
        advertised_ports: Advertised port by broker id, where it is not the port of the listener.

    Raises:
        OSError: No port was free.
    """
    free = iter(free_ports(controllers + 2 * brokers))
    return (
        *(_controller(_FIRST_CONTROLLER_ID + i, next(free)) for i in range(controllers)),
        *(_broker(1 + i, next(free), next(free), advertised_ports) for i in range(brokers)),
    )


def _controller(node_id: int, port: int) -> NodeSettings:
    return NodeSettings(
        node_id=node_id, role="controller", port=port, advertised_port=port, internal_port=port
    )


def _broker(node_id: int, port: int, internal_port: int, advertised_ports: Mapping[int, int]) -> NodeSettings:
    return NodeSettings(
        node_id=node_id,
        role="broker",
        port=port,
        advertised_port=advertised_ports.get(node_id, port),
        internal_port=internal_port,
    )


def node_properties(
    node: NodeSettings, *, folder: Path, nodes: tuple[NodeSettings, ...], overrides: Mapping[str, str]
) -> dict[str, str]:
    """Properties of one node of the cluster in this folder."""
    voters = [f"{n.node_id}@{HOST}:{n.port}" for n in nodes if n.role == "controller"]
    return {
        "process.roles": node.role,
        "node.id": str(node.node_id),
        # Static voters, not dynamic ones: their ports may differ when the data is used again.
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **(_broker_listeners(node) if node.role == "broker" else _controller_listeners(node)),
        **common_properties(node.data_dir(folder), brokers=len(nodes) - len(voters)),
        **overrides,
    }


def _broker_listeners(node: NodeSettings) -> dict[str, str]:
    internal = f"INTERNAL://{HOST}:{node.internal_port}"
    return {
        "listeners": f"CLIENT://{HOST}:{node.port},{internal}",
        "advertised.listeners": f"CLIENT://{HOST}:{node.advertised_port},{internal}",
        "inter.broker.listener.name": "INTERNAL",
    }


def _controller_listeners(node: NodeSettings) -> dict[str, str]:
    return {"listeners": f"CONTROLLER://{HOST}:{node.port}"}
