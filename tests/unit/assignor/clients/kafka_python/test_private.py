"""The private parts of kafka-python that the plug-in leans on: this fails when a release changes them."""

from collections.abc import Iterator
from importlib import metadata
from uuid import UUID

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.base import Generation
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import MemberState, TopicPartition

from assignor.clients.kafka_python.private import is_stuck, lost_within_join, request_rejoin, topic_id_of

ID = UUID(int=7)


@pytest.fixture
def stable() -> Iterator[KafkaConsumer]:
    """A consumer made to look like one that has joined, without a broker."""
    consumer = KafkaConsumer("t", group_id="g", bootstrap_servers="127.0.0.1:1", api_version=(2, 5))
    coordinator = consumer._coordinator
    coordinator._joined_subscription = {"t"}
    coordinator.rejoin_needed = False
    coordinator.state = MemberState.STABLE
    yield consumer
    coordinator.state = MemberState.UNJOINED
    consumer.close()


def test_release_is_the_one_that_was_read() -> None:
    assert metadata.version("kafka-python") == "3.0.12"


def test_requested_rejoin_is_needed(stable: KafkaConsumer) -> None:
    before = stable._coordinator.need_rejoin()

    request_rejoin(stable)

    assert (before, stable._coordinator.need_rejoin()) == (False, True)


def test_member_that_rebalances_and_needs_no_rejoin_is_stuck(stable: KafkaConsumer) -> None:
    before = is_stuck(stable)

    stable._coordinator.state = MemberState.REBALANCING

    assert (before, is_stuck(stable)) == (False, True)


def test_member_whose_join_goes_on_is_not_stuck(stable: KafkaConsumer) -> None:
    stable._coordinator.state = MemberState.REBALANCING

    request_rejoin(stable)

    assert not is_stuck(stable)


@pytest.fixture
def joining(stable: KafkaConsumer) -> KafkaConsumer:
    """A cooperative member in the middle of a join, with a partition."""
    stable._subscription.assign_from_subscribed([TopicPartition("t", 0)])
    stable._coordinator._generation = Generation(7, "m", "lagwise")
    stable._coordinator.rejoining = True
    return stable


def test_member_refused_in_a_join_begins_it_again(joining: KafkaConsumer) -> None:
    before = lost_within_join(joining)

    joining._coordinator.reset_generation()

    assert (before, lost_within_join(joining)) == (False, True)
    assert not joining._coordinator.rejoining


def test_client_tells_what_was_lost_where_a_join_begins(joining: KafkaConsumer) -> None:
    coordinator = joining._coordinator
    coordinator.reset_generation()

    coordinator._net.run(coordinator._on_join_prepare_async, -1, "")

    assert not joining.assignment()
    assert not lost_within_join(joining)


def test_topic_id_is_that_of_the_metadata(stable: KafkaConsumer) -> None:
    before = topic_id_of(stable, "t")
    topic = MetadataResponse.MetadataResponseTopic(
        version=12, error_code=0, name="t", topic_id=ID, partitions=[]
    )

    broker = MetadataResponse.MetadataResponseBroker(
        version=12, node_id=1, host="127.0.0.1", port=1, rack=None
    )
    stable._cluster.update_metadata(
        MetadataResponse(version=12, brokers=[broker], controller_id=-1, topics=[topic])
    )

    assert (before, topic_id_of(stable, "t")) == (None, ID)
