"""A cluster sized for tests, and the few things tests want from one: who leads, who is in sync, elections."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ElectionType, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic, PartitionMetadata

from pipeline.local.embedded.cluster import EmbeddedCluster
from tests.support.brokers.broker import SMALL, admin_client
from tests.support.brokers.proxy import HOST, Proxy
from tests.support.waiting import wait_until

SMALL_CLUSTER = {
    **SMALL,
    # A follower that is silent for so long is out of the in-sync replicas.
    "replica.lag.time.max.ms": "5000",
}


def small_cluster(
    nodes: int = 3,
    *,
    controllers: int = 1,
    data_dir: Path | None = None,
    advertised_ports: Mapping[int, int] | None = None,
    **more: str,
) -> EmbeddedCluster:
    """An `EmbeddedCluster` with few internal partitions; keywords are properties with `_` for `.`."""
    return EmbeddedCluster(
        nodes=nodes,
        controllers=controllers,
        data_dir=data_dir,
        advertised_ports=advertised_ports,
        properties={**SMALL_CLUSTER, **{key.replace("_", "."): value for key, value in more.items()}},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedCluster:
    """A cluster whose clients come through proxies; its brokers among themselves do not.

    Attributes:
        cluster: Its `bootstrap_servers` go through the proxies, its `internal_servers` past them.
        proxies: By broker id.
    """

    cluster: EmbeddedCluster
    proxies: Mapping[int, Proxy]


@contextmanager
def proxied_cluster(
    nodes: int = 3,
    *,
    controllers: int = 1,
    data_dir: Path | None = None,
    names_itself: str | None = None,
    **more: str,
) -> Iterator[ProxiedCluster]:
    """A `small_cluster` with a proxy before each broker, all forwarding; a property may name it by these proxies."""
    with ExitStack() as stack:
        proxies = {i: stack.enter_context(Proxy()) for i in range(1, nodes + 1)}
        ports = {i: proxy.port for i, proxy in proxies.items()}
        if names_itself is not None:
            more[names_itself] = ",".join(f"{HOST}:{port}" for port in ports.values())
        made = small_cluster(
            nodes, controllers=controllers, data_dir=data_dir, advertised_ports=ports, **more
        )
        cluster = stack.enter_context(made)
        for i, proxy in proxies.items():
            proxy.target_port = cluster.node(i).port
        yield ProxiedCluster(cluster=cluster, proxies=proxies)


def create_replicated_topics(
    bootstrap: str, replicas: Mapping[str, Sequence[Sequence[int]]], **config: str
) -> None:
    """Create topics with the given brokers for each partition and return when the first of them leads it.

    Args:
        bootstrap: Any brokers.
        replicas: By topic, the broker ids of each partition; all partitions of a topic have equally many.
        config: Settings of the topics, with `_` for `.`.
    """
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = admin_client(bootstrap)
    asked = [
        admin.create_topics(
            [NewTopic(name, len(brokers), replica_assignment=[list(ids) for ids in brokers], config=settings)]
        )[name]
        for name, brokers in replicas.items()
    ]
    for future in asked:
        future.result()
    wanted = {name: {i: ids[0] for i, ids in enumerate(brokers)} for name, brokers in replicas.items()}
    wait_until(
        lambda: all(leaders(bootstrap, name) == first for name, first in wanted.items()),
        what=f"the first replicas as leaders of {sorted(wanted)}",
    )


def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """Broker that leads each partition, -1 for none, as one of the brokers knows it at the moment."""
    return {number: found.leader for number, found in _partitions(bootstrap, topic).items()}


def in_sync(bootstrap: str, topic: str) -> dict[int, frozenset[int]]:
    """Brokers that are in sync for each partition, as one of the brokers knows it at the moment."""
    return {number: frozenset(found.isrs) for number, found in _partitions(bootstrap, topic).items()}


def elect_preferred(bootstrap: str, topic: str) -> None:
    """Give each partition back to the first of its replicas and return when it leads; all have to be in sync."""
    _elect(bootstrap, ElectionType.PREFERRED, topic, sorted(_partitions(bootstrap, topic)))
    wait_until(
        lambda: all(p.leader == p.replicas[0] for p in _partitions(bootstrap, topic).values()),
        what=f"preferred leaders of {topic}",
    )


def elect_unclean(bootstrap: str, topic: str, partition: int) -> int:
    """Make a replica that is not in sync the leader of a partition without one; what it lacks is lost.

    Returns:
        The broker that leads now.
    """
    _elect(bootstrap, ElectionType.UNCLEAN, topic, [partition])
    wait_until(lambda: leaders(bootstrap, topic)[partition] >= 0, what=f"a leader of {topic}-{partition}")
    return leaders(bootstrap, topic)[partition]


def _partitions(bootstrap: str, topic: str) -> dict[int, PartitionMetadata]:
    found: dict[int, PartitionMetadata] = (
        admin_client(bootstrap).list_topics(topic, timeout=10).topics[topic].partitions
    )
    return found


def _elect(bootstrap: str, kind: ElectionType, topic: str, partitions: Sequence[int]) -> None:
    wanted = [TopicPartition(topic, partition) for partition in partitions]
    # A client that is collected before the answer leaves the future open for ever.
    admin = admin_client(bootstrap)
    answers = admin.elect_leaders(kind, wanted).result(30)
    for partition, error in answers.items():
        if error is not None and error.code() != KafkaError.ELECTION_NOT_NEEDED:
            raise AssertionError(f"no {kind.name} leader for {partition}: {error}")
