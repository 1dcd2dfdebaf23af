"""The embedded cluster: one node or the other is lost and comes back, for all or for its clients only."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from pipeline.errors import BrokerUnavailableError
from pipeline.local.embedded.cluster import EmbeddedCluster
from tests.support.brokers.broker import (
    OFFSETS_TOPIC,
    admin_client,
    create_offsets_topic,
    create_topics,
    is_alive,
    produce,
)
from tests.support.brokers.broker_command import lagwise_broker
from tests.support.brokers.cluster import (
    ProxiedCluster,
    create_replicated_topics,
    elect_preferred,
    elect_unclean,
    in_sync,
    leaders,
    proxied_cluster,
    small_cluster,
)
from tests.support.waiting import wait_until

ALL = frozenset({1, 2, 3})
NODE_LINE = re.compile(r"(?P<node>\w+ \d+): process (?P<pid>\d+), port \d+, /")
EVERY_LEADER = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[ProxiedCluster]:
    with proxied_cluster() as running:
        create_offsets_topic(running.cluster.bootstrap_servers)
        yield running


@pytest.fixture
def bench(shared_bench: ProxiedCluster) -> ProxiedCluster:
    """Three brokers behind proxies, running and in sync; every test leaves the proxies forwarding."""
    shared_bench.cluster.start()
    wait_until_in_sync(shared_bench.cluster.internal_servers, OFFSETS_TOPIC)
    return shared_bench


@pytest.fixture
def cluster(bench: ProxiedCluster) -> EmbeddedCluster:
    return bench.cluster


def log_end(bootstrap: str, topic: str, partition: int, timeout_s: float = 10.0) -> int | None:
    """Offset after the last record; null when the leader did not answer."""
    asked = {TopicPartition(topic, partition): OffsetSpec.latest()}
    # A client that is collected before the answer leaves the future open for ever.
    admin = admin_client(bootstrap)
    (answer,) = admin.list_offsets(asked, request_timeout=timeout_s).values()
    offset = int(answer.result(timeout_s + 10).offset)
    return offset if offset >= 0 else None


def wait_until_in_sync(bootstrap: str, topic: str) -> None:
    wait_until(lambda: set(in_sync(bootstrap, topic).values()) == {ALL}, what=f"all replicas of {topic}")


def test_internal_topics_are_on_three_brokers(cluster: EmbeddedCluster) -> None:
    assert set(in_sync(cluster.bootstrap_servers, OFFSETS_TOPIC).values()) == {ALL}


def test_clients_are_told_the_ports_of_the_proxies(bench: ProxiedCluster) -> None:
    admin = admin_client(bench.cluster.bootstrap_servers)

    nodes = admin.describe_cluster().result(10).nodes

    assert {node.id: node.port for node in nodes} == {i: proxy.port for i, proxy in bench.proxies.items()}


def test_a_killed_leader_is_followed_by_a_replica_and_comes_back(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    create_replicated_topics(servers, {"killed": EVERY_LEADER})
    produce(servers, "killed", {0: 3, 1: 3, 2: 3})

    cluster.node(2).kill()
    wait_until(lambda: leaders(servers, "killed") == {0: 1, 1: 3, 2: 3}, what="another leader")
    produce(servers, "killed", {1: 2})
    cluster.node(2).start()
    wait_until_in_sync(servers, "killed")
    elect_preferred(servers, "killed")

    assert leaders(servers, "killed") == {0: 1, 1: 2, 2: 3}
    assert log_end(servers, "killed", 1) == 5


def test_a_paused_leader_is_followed_by_a_replica(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    create_replicated_topics(servers, {"paused": EVERY_LEADER, "paused-alone": [[3]]})
    cluster.node(3).pause()
    try:
        wait_until(lambda: leaders(servers, "paused") == {0: 1, 1: 2, 2: 1}, what="another leader")

        wait_until(lambda: leaders(servers, "paused-alone") == {0: -1}, what="no leader")
    finally:
        cluster.node(3).resume()
    wait_until_in_sync(servers, "paused")
    wait_until(lambda: leaders(servers, "paused-alone") == {0: 3}, what="the only replica")


def test_without_its_controller_a_cluster_serves_and_changes_nothing(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    create_replicated_topics(servers, {"controlled": EVERY_LEADER})

    cluster.node(101).kill()
    produce(servers, "controlled", {0: 2})
    admin = admin_client(servers)
    asked = admin.create_topics([NewTopic("uncontrolled", 1, 3)], request_timeout=2.0)["uncontrolled"]
    with pytest.raises(KafkaException):
        asked.result(10)
    cluster.node(101).start()

    create_topics(servers, {"controlled-again": 1})
    assert log_end(servers, "controlled", 0) == 2


def test_a_black_hole_is_one_for_clients_only(bench: ProxiedCluster) -> None:
    servers, internal = bench.cluster.bootstrap_servers, bench.cluster.internal_servers
    create_replicated_topics(servers, {"hole": EVERY_LEADER})
    produce(servers, "hole", {0: 1, 1: 1, 2: 1})

    bench.proxies[2].black_hole()
    try:
        produce(internal, "hole", {0: 1, 1: 1, 2: 1})

        assert log_end(servers, "hole", 0) == 2
        assert log_end(servers, "hole", 1, timeout_s=1.0) is None
        assert log_end(internal, "hole", 1) == 2
        assert set(in_sync(internal, "hole").values()) == {ALL}
        assert leaders(internal, "hole") == {0: 1, 1: 2, 2: 3}
    finally:
        bench.proxies[2].forward()
    assert log_end(servers, "hole", 1) == 2


def test_an_unclean_election_loses_what_the_new_leader_lacked(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    create_replicated_topics(servers, {"unclean": [[1, 2]]})
    produce(servers, "unclean", {0: 3})
    wait_until(lambda: in_sync(servers, "unclean") == {0: {1, 2}}, what="a follower")
    cluster.node(2).stop()
    produce(servers, "unclean", {0: 4})
    cluster.node(1).kill()
    cluster.node(2).start()

    wait_until(lambda: leaders(servers, "unclean") == {0: -1}, what="no leader")
    assert elect_unclean(servers, "unclean", 0) == 2
    assert log_end(servers, "unclean", 0) == 3
    cluster.node(1).start()
    wait_until(lambda: in_sync(servers, "unclean") == {0: {1, 2}}, what="the truncated replica")


def test_a_cluster_goes_on_with_its_data_in_the_same_folder(tmp_path: Path) -> None:
    with small_cluster(1, data_dir=tmp_path) as first:
        create_replicated_topics(first.bootstrap_servers, {"kept": [[1]]})
        produce(first.bootstrap_servers, "kept", {0: 3})
        first_id, pids = first.cluster_id, [node.pid for node in first.nodes]
    assert not any(is_alive(pid) for pid in pids if pid)

    with small_cluster(1, data_dir=tmp_path) as again:
        assert log_end(again.bootstrap_servers, "kept", 0) == 3
        assert again.cluster_id == first_id


def test_the_folder_of_other_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"brokers": 3, "controllers": 1, "cluster_id": "x"}')

    with pytest.raises(BrokerUnavailableError, match="3 brokers and 1 controllers, not of 2 and 1"):
        small_cluster(2, data_dir=tmp_path).start()


def test_a_start_that_fails_says_why_and_leaves_nothing_behind() -> None:
    cluster = small_cluster(num_partitions="many")

    with pytest.raises(BrokerUnavailableError, match=r"num\.partitions"), cluster:
        pass

    assert not cluster.data_dir.exists()
    with pytest.raises(BrokerUnavailableError, match="not been started yet"):
        _ = cluster.nodes


def test_the_command_says_where_each_node_is_and_goes_on_without_one_that_was_killed(tmp_path: Path) -> None:
    with lagwise_broker("--nodes", "2", "--data", str(tmp_path)) as owner:
        assert owner.stdout
        assert owner.stderr
        servers = owner.stdout.readline().removeprefix("bootstrap servers: ").strip()
        assert owner.stdout.readline() == f"data: {tmp_path}\n"
        lines = [NODE_LINE.match(owner.stdout.readline()) for _ in range(3)]
        pids = {found["node"]: int(found["pid"]) for found in lines if found}

        create_replicated_topics(servers, {"left": [[1]]})
        os.kill(pids["broker 2"], signal.SIGKILL)
        ended = owner.stderr.readline()
        produce(servers, "left", {0: 1})
        owner.send_signal(signal.SIGTERM)
        _, said = owner.communicate(timeout=40)

    assert pids.keys() == {"controller 101", "broker 1", "broker 2"}
    assert ended == f"broker 2 stopped; see {tmp_path}/broker-2/server.log\n"
    assert (owner.returncode, said) == (0, "stopped\n")
    assert not any(is_alive(pid) for pid in pids.values())


def test_the_command_refuses_one_port_for_several_brokers() -> None:
    with lagwise_broker("--nodes", "2", "--port", "29092") as owner:
        _, said = owner.communicate(timeout=30)

    assert owner.returncode == 2
    assert "several brokers choose free ports" in said
