"""A record that unpacks to more than the client takes; librdkafka reads it from its own mock of a broker."""

from collections.abc import Iterator

import pytest

from pipeline.kafka.positions import Span
from pipeline.kafka.sources.records import consumer
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.settings import ReadSettings
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from tests.support.brokers.mock_cluster import TOO_LARGE, MockCluster


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the consumers, which are kept for the next batch."""
    yield
    while consumer._consumers:
        consumer._consumers.popitem()[1].close()


def read(cluster: MockCluster, topic: str, *, start: int) -> tuple[list[int], dict[str, object]]:
    """Offsets of the records from there to 3, and the row of the span."""
    settings = ReadSettings(properties={"bootstrap.servers": cluster.bootstrap}, timeout_s=5)
    offsets: list[int] = []
    row: dict[str, object] = {}
    for piece in consume([Span(topic=topic, partition=0, start=start, end=3)], settings):
        if isinstance(piece, list):
            (row,) = piece
        else:
            offsets += piece["offset"].to_pylist()
    return offsets, row


def test_acknowledgement_that_cannot_be_unpacked_is_passed_over_and_the_next_batch_reads_on() -> None:
    with MockCluster(1) as cluster:
        cluster.create("acks", 1)
        cluster.write("acks", b"0", TOO_LARGE, b"2")

        before, row = read(cluster, "acks", start=0)
        assert (before, row["position"]) == ([0], 2)
        assert str(row["error"]).startswith("the record at offset 1 cannot be unpacked and is passed over: ")

        after, row = read(cluster, "acks", start=2)
        assert (after, row["position"], row["error"]) == ([2], 3, None)


def test_commit_that_cannot_be_unpacked_is_not_passed_over() -> None:
    with MockCluster(1) as cluster:
        cluster.create(OFFSETS_TOPIC, 1)
        cluster.write(OFFSETS_TOPIC, b"0", TOO_LARGE, b"2")

        _, row = read(cluster, OFFSETS_TOPIC, start=1)

    assert row["position"] == 1
    assert row["error"]
