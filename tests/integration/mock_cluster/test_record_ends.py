"""Where logs end, asked of several brokers, of which one hangs, is down, or has lost a partition or a topic."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from pipeline.config.model import Config, KafkaConfig
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, TopicMissingError
from pipeline.kafka.client import librdkafka_properties
from pipeline.kafka.positions import Answer, End, PartitionKey
from pipeline.kafka.sources.records.ends import EndsAsker
from tests.support.brokers.mock_cluster import LIST_OFFSETS, MockCluster

TIMEOUT_S = 1.5
RECORDS = 7
KEYS: list[PartitionKey] = [("offsets", number) for number in range(6)] + [("acks", 0)]
WHOLE = End(log_start=0, stable=RECORDS, high=RECORDS)


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with filled() as running:
        yield running


@contextmanager
def filled() -> Iterator[MockCluster]:
    with MockCluster() as running:
        running.create("offsets", 6)
        running.create("acks", 1)
        running.fill("offsets", dict.fromkeys(range(6), RECORDS))
        running.fill("acks", {0: RECORDS})
        yield running


@pytest.fixture
def clients() -> list[AdminClient]:
    """Those that were made, oldest first."""
    return []


@pytest.fixture
def ask(cluster: MockCluster, clients: list[AdminClient]) -> EndsAsker:
    def client() -> AdminClient:
        clients.append(admin(cluster))
        return clients[-1]

    return EndsAsker(client, ("offsets", "acks"), timeout_s=TIMEOUT_S)


def admin(cluster: MockCluster) -> AdminClient:
    kafka = KafkaConfig(properties={"bootstrap.servers": cluster.bootstrap})
    return AdminClient(librdkafka_properties(Config(kafka=kafka)))


def silent(answers: dict[PartitionKey, Answer]) -> list[PartitionKey]:
    return [key for key in KEYS if answers[key] != WHOLE]


def test_every_leader_says_where_its_logs_end(ask: EndsAsker, clients: list[AdminClient]) -> None:
    assert ask() == dict.fromkeys(KEYS, WHOLE)
    assert ask() == dict.fromkeys(KEYS, WHOLE)
    assert len(clients) == 1


@pytest.mark.parametrize("what", ["hang", "stop"])
def test_broker_that_does_not_answer_costs_its_own_partitions_and_its_time_once(
    cluster: MockCluster, ask: EndsAsker, what: str
) -> None:
    ask()
    getattr(cluster, what)(2)

    begun = time.monotonic()
    answers = ask()

    # Metadata may be asked of the broker that hangs first, and once more.
    assert time.monotonic() - begun < 2 * TIMEOUT_S + 1
    assert silent(answers) == [("offsets", 1), ("offsets", 4)]
    assert f"broker 2 ({cluster.address(2)})" in str(answers["offsets", 1])


def test_leader_of_many_partitions_that_hangs_costs_no_more_time_than_one_of_few(
    cluster: MockCluster,
) -> None:
    cluster.create("large", 300)
    ask = EndsAsker(lambda: admin(cluster), ("large",), timeout_s=TIMEOUT_S)
    ask()
    cluster.hang(2)

    for _ in range(2):
        begun = time.monotonic()
        answers = ask()

        assert time.monotonic() - begun < 2 * TIMEOUT_S + 1
        assert sum(isinstance(answer, str) for answer in answers.values()) == 100


def test_broker_that_still_does_not_answer_is_not_waited_for_as_long_again(cluster: MockCluster) -> None:
    timeout_s = 4
    ask = EndsAsker(lambda: admin(cluster), ("offsets", "acks"), timeout_s=timeout_s)
    ask()
    cluster.hang(2)
    ask()

    begun = time.monotonic()
    answers = ask()

    # A second for the broker, and half of the time for a listing that meets it.
    assert time.monotonic() - begun < 1 + timeout_s / 2 + 0.9
    assert silent(answers) == [("offsets", 1), ("offsets", 4)]


def silent_while_one_hangs(broker: int) -> list[list[PartitionKey]]:
    with filled() as cluster:
        ask = EndsAsker(lambda: admin(cluster), ("offsets", "acks"), timeout_s=1)
        ask()
        cluster.hang(broker)
        return [silent(ask()) for _ in range(4)]


def test_broker_that_hangs_never_keeps_the_others_from_being_asked() -> None:
    with ThreadPoolExecutor() as pool:
        of_each = list(pool.map(silent_while_one_hangs, (1, 2, 3)))

    assert all(len(keys) in {2, 3} for times in of_each for keys in times)


def test_broker_that_answers_again_is_asked_as_before(cluster: MockCluster, ask: EndsAsker) -> None:
    ask()
    cluster.hang(2)
    ask()
    cluster.answer(2)

    ask()

    assert silent(ask()) == []


def test_partition_without_a_leader_is_said_to_have_none(cluster: MockCluster, ask: EndsAsker) -> None:
    cluster.unlead("offsets", 3)

    answers = ask()

    assert silent(answers) == [("offsets", 3)]
    assert answers["offsets", 3] == "the partition has no leader"


def test_partition_that_has_moved_is_asked_of_its_new_leader(cluster: MockCluster, ask: EndsAsker) -> None:
    ask()
    cluster.lead("offsets", 1, 3)
    cluster.stop(2)

    assert silent(ask()) == [("offsets", 4)]


def test_right_that_is_missing_is_an_error_with_the_topic(cluster: MockCluster, ask: EndsAsker) -> None:
    cluster.refuse("acks", KafkaError.TOPIC_AUTHORIZATION_FAILED)

    with pytest.raises(AccessRefusedError, match="acks"):
        ask()


def test_right_that_only_a_leader_misses_is_an_error_with_the_topic(
    cluster: MockCluster, ask: EndsAsker
) -> None:
    ask()
    cluster.fail_next(LIST_OFFSETS, *[KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3)

    with pytest.raises(AccessRefusedError, match="topic offsets cannot be read"):
        ask()


def test_error_of_a_leader_is_told_with_its_name(cluster: MockCluster, ask: EndsAsker) -> None:
    ask()
    cluster.fail_next(LIST_OFFSETS, *[KafkaError.KAFKA_STORAGE_ERROR] * 40)

    answers = ask()

    assert silent(answers)
    assert all("broker" in str(answers[key]) for key in silent(answers))


def test_topic_that_is_gone_is_told_from_a_cluster_that_is_away(cluster: MockCluster, ask: EndsAsker) -> None:
    ask()
    cluster.delete("acks")

    with pytest.raises(TopicMissingError, match="topic acks was deleted"):
        ask()


def test_cluster_that_is_away_as_a_whole_is_an_error(cluster: MockCluster, ask: EndsAsker) -> None:
    ask()
    for broker in (1, 2, 3):
        cluster.stop(broker)

    with pytest.raises(BrokerUnavailableError) as away:
        ask()

    assert not isinstance(away.value, TopicMissingError)
