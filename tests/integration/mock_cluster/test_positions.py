"""What a follower of confluent-kafka relies on: librdkafka's position is behind the last record, not behind an error."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.support.brokers.mock_cluster import FETCH, MockCluster
from tests.support.waiting import wait_until

TOPIC = "records"
PLACES = [TopicPartition(TOPIC, 0, 0), TopicPartition(TOPIC, 1, 0)]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(1) as cluster:
        cluster.create(TOPIC, 2)
        cluster.fill(TOPIC, {0: 50, 1: 50})
        yield cluster


@pytest.mark.parametrize(
    "code",
    [KafkaError._PARTITION_EOF, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.OFFSET_OUT_OF_RANGE],
    ids=["end", "no right", "offset out of range"],
)
def test_error_in_a_batch_is_not_counted(cluster: MockCluster, code: int) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "positions",
        "enable.auto.commit": False,
        "enable.partition.eof": code == KafkaError._PARTITION_EOF,
        "auto.offset.reset": "error",
        "log_level": 0,
    }
    with closing(Consumer(config)) as consumer:
        consumer.assign(PLACES)
        read: list[Message] = []

        def arrived(*, errors: bool) -> list[Message]:
            read.extend(consumer.consume(500, 0.1))
            return [one for one in read if (one.error() is not None) is errors]

        wait_until(lambda: len(arrived(errors=False)) == 100, what="all records")
        if code != KafkaError._PARTITION_EOF:
            cluster.fail_next(FETCH, code)
        wait_until(lambda: arrived(errors=True), what="an error of a partition")

        assert {one.offset() for one in read if one.error() is not None} == {50}
        assert [place.offset for place in consumer.position(PLACES)] == [50, 50]
