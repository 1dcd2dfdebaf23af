"""Settings of an embedded Kafka: jars, ports, server.properties, log4j2.properties."""

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path

KAFKA = ("org.apache.kafka:kafka_2.13:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
HOST = "127.0.0.1"

# Below the ports of outgoing connections in Linux (32768 up) and macOS (49152 up). Otherwise a client that keeps
# connecting while the broker is down could get the broker's port as its own, and hold it.
_PORTS = range(20_000, 32_000)
_PORT_TRIES = 200
_FULLY_REPLICATED = 3

LOG4J2 = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/server.log
appender.file.filePattern = {directory}/server.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


def free_port(avoid: frozenset[int] = frozenset()) -> int:
    """A loopback port that has no listener at present.

    Raises:
        OSError: None of many tried was free.
    """
    for _ in range(_PORT_TRIES):
        port = secrets.choice(_PORTS)
        if port not in avoid and _is_free(port):
            return port
    raise OSError(f"no free port on {HOST} between {_PORTS.start} and {_PORTS.stop}")


def free_ports(count: int) -> tuple[int, ...]:
    """This number of different ports, each as from `free_port`.

    Raises:
        OSError: None of many tried was free.
    """
    chosen: list[int] = []
    for _ in range(count):
        chosen.append(free_port(avoid=frozenset(chosen)))
    return tuple(chosen)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As in Java: connections of a broker that has just stopped do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def server_properties(
    *, data_dir: Path, port: int, controller_port: int, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Properties of one KRaft node that is broker and controller, on loopback only."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        # A static voter, not a dynamic one: its port may differ when the data is used again.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **common_properties(data_dir, brokers=1),
        **overrides,
    }


def common_properties(data_dir: Path, *, brokers: int) -> dict[str, str]:
    """Properties of every node of a cluster with this number of brokers."""
    replicas = str(min(3, brokers))
    # One of three replicas may be missing; with two or fewer, none could be missing if two had to be in sync.
    in_sync = "2" if brokers >= _FULLY_REPLICATED else "1"
    return {
        "log.dirs": str(data_dir / "kafka"),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # Followers of confluent-kafka take plans only without online migration of groups, which is Kafka's default.
        "group.consumer.migration.policy": "disabled",
        # A deleted topic stays deleted although a consumer still asks for it.
        "auto.create.topics.enable": "false",
        # The default of 128 MB is a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def properties_text(properties: Mapping[str, str]) -> str:
    """The properties in the format of Java, sorted."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(properties.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
