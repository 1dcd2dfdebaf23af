"""Probe of an embedded broker: whether it answers, and the brokers that it knows."""

import socket

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.local.embedded.config import HOST


class BrokerProbe:
    """Asks the broker on one loopback port for the brokers of its cluster."""

    def __init__(self, port: int) -> None:
        """Do not connect yet: a client waits too long after a refused connection."""
        self._port = port
        self._admin: AdminClient | None = None

    def broker_ids(self, cluster_id: str) -> frozenset[int]:
        """Ids of the live brokers of this cluster; empty while the broker does not answer.

        The cluster id tells it from another process on the port.
        """
        if self._admin is None:
            if not _accepts(self._port):
                return frozenset()
            self._admin = AdminClient({"bootstrap.servers": f"{HOST}:{self._port}", "log_level": 0})
        try:
            cluster = self._admin.describe_cluster(request_timeout=1.0).result()
        except KafkaException:
            return frozenset()
        if cluster.cluster_id != cluster_id:
            return frozenset()
        return frozenset(node.id for node in cluster.nodes)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
