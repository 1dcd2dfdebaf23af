"""One client of a worker: which leaders it goes by, and when it asks for them again."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.kafka.list_offsets.leaders import Leaders
from tests.support.brokers.mock_cluster import METADATA, MockCluster

PARTITIONS = [("orders", number) for number in range(6)]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        running.create("orders", len(PARTITIONS))
        yield running


def leaders_of(cluster: MockCluster) -> Leaders:
    leaders = Leaders(lambda: AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))
    leaders.prepare(PARTITIONS, timeout_s=5)
    return leaders


def test_every_partition_has_a_leader_with_a_name(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)

    assert [leaders.of(key) for key in PARTITIONS] == [1, 2, 3, 1, 2, 3]
    assert leaders.name(2) == f"broker 2 ({cluster.address(2)})"


def test_leaders_that_nothing_speaks_against_are_not_asked_for_again(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    cluster.watch()

    leaders.prepare(PARTITIONS, timeout_s=5)

    assert cluster.requests(METADATA) == 0


def test_leaders_in_doubt_are_renewed(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    cluster.lead("orders", 0, 3)
    cluster.unlead("orders", 1)

    leaders.doubt()
    leaders.prepare(PARTITIONS, timeout_s=5)

    assert [leaders.of(key) for key in PARTITIONS[:3]] == [3, "the partition has no leader", 3]


def test_partition_that_is_not_known_yet_makes_leaders_be_renewed(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    cluster.create("payments", 1)

    leaders.prepare([("payments", 0)], timeout_s=5)

    assert leaders.of(("payments", 0)) in {1, 2, 3}


def test_leaders_stay_when_nobody_answers_and_are_renewed_later(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    for broker in (1, 2, 3):
        cluster.hang(broker)
    leaders.doubt()
    leaders.prepare(PARTITIONS, timeout_s=0.4)
    known = [leaders.of(key) for key in PARTITIONS]
    for broker in (1, 2, 3):
        cluster.answer(broker)
    cluster.lead("orders", 0, 2)

    leaders.prepare(PARTITIONS, timeout_s=20)

    assert (known, leaders.of(PARTITIONS[0])) == ([1, 2, 3, 1, 2, 3], 2)


def test_address_of_a_broker_outlives_it(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    cluster.stop(2)

    leaders.renew(timeout_s=5)

    assert leaders.name(2) == f"broker 2 ({cluster.address(2)})"


def test_listing_goes_to_another_broker_when_one_hangs(cluster: MockCluster) -> None:
    for hanging in (1, 2, 3):
        leaders = leaders_of(cluster)
        cluster.hang(hanging)

        begun = time.monotonic()
        found = [sorted(leaders.listing(timeout_s=4).topics) for _ in range(4)]

        assert found == [["orders"]] * 4
        # Half of the time is lost once at most: the client that met the broker that hangs is not used again.
        assert time.monotonic() - begun < 4
        cluster.answer(hanging)


def test_listing_that_nobody_answers_ends_in_time(cluster: MockCluster) -> None:
    leaders = leaders_of(cluster)
    for broker in (1, 2, 3):
        cluster.hang(broker)

    begun = time.monotonic()
    with pytest.raises(KafkaException) as refused:
        leaders.listing(timeout_s=1)

    assert time.monotonic() - begun < 1.5
    assert refused.value.args[0].code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}
