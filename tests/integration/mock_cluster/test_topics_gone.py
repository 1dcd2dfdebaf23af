"""A topic is gone when the brokers say so by name, and not before."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from pipeline.kafka.list_offsets.leaders import Leaders
from pipeline.kafka.sources.log_offsets.topics_gone import Found, confirm_gone
from tests.support.brokers.mock_cluster import MockCluster


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        running.create("orders", 3)
        yield running


@pytest.fixture
def leaders(cluster: MockCluster) -> Leaders:
    return Leaders(lambda: AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))


def test_topic_that_no_broker_knows_has_no_partitions_left(leaders: Leaders) -> None:
    found = confirm_gone(leaders, ["orders", "gone"], timeout_s=5)

    assert found == Found(remaining={"orders": 3, "gone": 0})


def test_topic_that_this_user_may_not_describe_is_not_gone(cluster: MockCluster, leaders: Leaders) -> None:
    cluster.refuse("orders", KafkaError.TOPIC_AUTHORIZATION_FAILED)

    found = confirm_gone(leaders, ["orders", "gone"], timeout_s=5)

    assert found.remaining == {"gone": 0}
    assert found.unconfirmed["orders"].startswith("this user may not describe the topic any more")


def test_topic_whose_question_failed_is_not_gone(cluster: MockCluster, leaders: Leaders) -> None:
    cluster.refuse("orders", KafkaError.TOPIC_EXCEPTION)

    found = confirm_gone(leaders, ["orders"], timeout_s=5)

    assert found.remaining == {}
    assert found.unconfirmed["orders"].endswith("Invalid topic")


def test_cluster_that_does_not_answer_confirms_nothing_and_takes_its_time_once(
    cluster: MockCluster, leaders: Leaders
) -> None:
    for broker in (1, 2, 3):
        cluster.hang(broker)

    begun = time.monotonic()
    found = confirm_gone(leaders, ["orders", "gone"], timeout_s=1)

    assert time.monotonic() - begun < 2
    assert (found.remaining, sorted(found.unconfirmed)) == ({}, ["gone", "orders"])


def test_another_broker_is_asked_when_the_first_does_not_answer(
    cluster: MockCluster, leaders: Leaders
) -> None:
    leaders.listing(timeout_s=5)
    cluster.hang(1)
    cluster.controller(3)

    assert confirm_gone(leaders, ["orders", "gone"], timeout_s=4).remaining == {"orders": 3, "gone": 0}


def test_nothing_is_asked_when_nothing_is_missing(leaders: Leaders) -> None:
    assert confirm_gone(leaders, [], timeout_s=5) == Found()
