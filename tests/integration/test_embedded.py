"""The embedded broker: it starts, keeps its data and port, and leaves nothing behind."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaException, TopicPartition

from pipeline.errors import BrokerUnavailableError
from pipeline.local.embedded import broker as embedded
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import (
    SMALL,
    admin_client,
    create_offsets_topic,
    create_topics,
    is_alive,
    produce,
    small_broker,
)
from tests.support.brokers.broker_command import lagwise_broker
from tests.support.waiting import wait_until


def log_end(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1])
    finally:
        consumer.close()


def java_of(data_dir: Path) -> int:
    """Process id of the Java process that works in this folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"kafka.Kafka {data_dir}/"], capture_output=True, text=True, check=True
    )
    return min(int(line) for line in found.stdout.split() if is_java(int(line)))


def is_java(pid: int) -> bool:
    asked = subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "java" in asked.stdout


def test_the_cluster_that_answers_is_the_one_in_the_folder(broker: EmbeddedBroker) -> None:
    admin = admin_client(broker.bootstrap_servers)

    answer = admin.describe_cluster().result(10)

    assert answer.cluster_id == broker.cluster_id
    assert [node.host for node in answer.nodes] == ["127.0.0.1"]


def test_starting_a_running_broker_changes_nothing(broker: EmbeddedBroker) -> None:
    before = broker.pid

    broker.start()

    assert broker.pid == before


def test_kip_848_consumers_are_served(broker: EmbeddedBroker) -> None:
    admin = admin_client(broker.bootstrap_servers)
    create_topics(broker.bootstrap_servers, {"kip-848": 2})
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "kip-848", "group.protocol": "consumer"}
    )
    consumer.subscribe(["kip-848"])
    try:
        wait_until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 2, what="an assignment")
        group = admin.describe_consumer_groups(["kip-848"])["kip-848"].result(10)
    finally:
        consumer.close()

    assert group.type == ConsumerGroupType.CONSUMER
    assert group.state == ConsumerGroupState.STABLE


@pytest.fixture(scope="module")
def _own() -> Iterator[EmbeddedBroker]:
    with small_broker() as running:
        yield running


@pytest.fixture
def own(_own: EmbeddedBroker) -> EmbeddedBroker:
    """A running broker that the tests of this file may stop, freeze and kill."""
    _own.start()
    return _own


def test_data_and_port_survive_stop_and_kill(own: EmbeddedBroker) -> None:
    bootstrap, cluster_id = own.bootstrap_servers, own.cluster_id
    create_topics(bootstrap, {"kept": 1})
    produce(bootstrap, "kept", {0: 3})

    own.restart()
    after_restart = log_end(own.bootstrap_servers, "kept")
    produce(bootstrap, "kept", {0: 2})
    own.kill()
    assert own.pid is None
    own.start()

    assert after_restart == 3
    assert log_end(bootstrap, "kept") == 5
    assert (own.bootstrap_servers, own.cluster_id) == (bootstrap, cluster_id)


def test_brokers_of_one_process_have_ids_of_their_own(broker: EmbeddedBroker, own: EmbeddedBroker) -> None:
    ids, others = (
        set((one.data_dir / "kafka" / "meta.properties").read_text(encoding="utf-8").splitlines())
        for one in (broker, own)
    )

    assert {line.partition("=")[0] for line in ids - others if not line.startswith("#")} == {
        "cluster.id",
        "directory.id",
    }


def test_paused_broker_is_silent_until_it_is_resumed(own: EmbeddedBroker) -> None:
    admin = admin_client(own.bootstrap_servers)
    own.pause()
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.5)

    own.resume()

    wait_until(lambda: admin.list_topics(timeout=5).brokers, what="an answer")


def test_stop_lets_a_broker_shut_down_cleanly_though_it_is_paused(own: EmbeddedBroker) -> None:
    own.pause()

    own.stop()

    assert own.pid is None
    assert was_shut_down_cleanly(own)


def test_given_folder_stays_with_its_cluster_and_the_broker_in_it_shuts_down_cleanly(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, properties=SMALL) as given:
        first_id = given.cluster_id
    was_clean = was_shut_down_cleanly(given)
    with EmbeddedBroker(data_dir=tmp_path, properties=SMALL) as again:
        second_id = again.cluster_id

    assert was_clean
    assert second_id == first_id


def was_shut_down_cleanly(broker: EmbeddedBroker) -> bool:
    return (broker.data_dir / "kafka" / ".kafka_cleanshutdown").is_file()


def test_port_that_was_taken_is_chosen_again_properties_have_the_new_address_and_a_temporary_folder_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = embedded.free_port
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        offers = iter([taken])
        monkeypatch.setattr(
            embedded, "free_port", lambda avoid=frozenset(): next(offers, None) or free(avoid)
        )

        with EmbeddedBroker(properties=SMALL, own_address=("reader.servers",)) as broker:
            assert not broker.bootstrap_servers.endswith(f":{taken}")
            written = (broker.data_dir / "server.properties").read_text(encoding="utf-8").splitlines()
            assert f"reader.servers={broker.bootstrap_servers}" in written

    assert not broker.data_dir.exists()


def test_given_port_that_is_taken_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        broker = EmbeddedBroker(data_dir=tmp_path, port=taken, properties=SMALL)

        with pytest.raises(BrokerUnavailableError, match="Address already in use"):
            broker.start()

    assert broker.pid is None


def test_property_that_kafka_refuses_is_in_the_error(tmp_path: Path) -> None:
    broker = EmbeddedBroker(data_dir=tmp_path, properties={"num.partitions": "many"})

    with pytest.raises(BrokerUnavailableError, match=r"num\.partitions"):
        broker.start()


def test_no_java_process_outlives_a_killed_owner(tmp_path: Path) -> None:
    with lagwise_broker("--data", str(tmp_path)) as owner:
        assert owner.stdout
        assert owner.stdout.readline().startswith("bootstrap servers: 127.0.0.1:")
        java = java_of(tmp_path)

        owner.kill()

        wait_until(lambda: not is_alive(java), what="end of the broker")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_command_ends_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with lagwise_broker("--data", str(tmp_path), "--partitions-of-offsets-topic", "3") as owner:
        assert owner.stdout
        bootstrap = owner.stdout.readline().split()[-1]
        assert owner.stdout.readline() == f"data: {tmp_path}\n"
        java = java_of(tmp_path)
        create_offsets_topic(bootstrap)
        topics = admin_client(bootstrap).list_topics(timeout=10).topics

        owner.send_signal(number)
        _, said = owner.communicate(timeout=30)

    assert (owner.returncode, said) == (0, "stopped\n")
    assert len(topics["__consumer_offsets"].partitions) == 3
    assert not is_alive(java)


def test_command_says_when_the_broker_ends_by_itself(tmp_path: Path) -> None:
    with lagwise_broker("--data", str(tmp_path)) as owner:
        assert owner.stdout
        owner.stdout.readline()

        subprocess.run(["kill", "-KILL", str(java_of(tmp_path))], check=True)
        _, said = owner.communicate(timeout=30)

    assert owner.returncode == 1
    assert f"stopped unexpectedly; see {tmp_path}/server.log" in said
