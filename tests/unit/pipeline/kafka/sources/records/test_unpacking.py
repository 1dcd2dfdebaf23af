"""A record that unpacks to more than the client takes; librdkafka reads it from its own mock of a broker."""

from collections.abc import Iterator

import pytest

from pipeline.kafka.positions import Span
from pipeline.kafka.sources.records import consumer
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.settings import ReadSettings
from tests.support.brokers.mock_cluster import TOO_LARGE, MockCluster


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the consumers, which are kept for the next batch."""
    yield
    while consumer._consumers:
        consumer._consumers.popitem()[1].close()


END = 1 + len(TOO_LARGE) + 300


def read(cluster: MockCluster, topic: str) -> tuple[list[int], dict[str, object]]:
    """Offsets of the records that are read, and the row of the span."""
    settings = ReadSettings(
        properties={"bootstrap.servers": cluster.bootstrap}, timeout_s=5, passes_over=frozenset({"acks"})
    )
    offsets: list[int] = []
    row: dict[str, object] = {}
    for piece in consume([Span(topic=topic, partition=0, start=0, end=END)], settings):
        if isinstance(piece, list):
            (row,) = piece
        else:
            offsets += piece["offset"].to_pylist()
    return offsets, row


def filled(cluster: MockCluster, topic: str) -> None:
    """A record, a batch that cannot be unpacked, and more records."""
    cluster.create(topic, 1)
    cluster.write(topic, (b"before",), TOO_LARGE, *[(b"behind",)] * 300)


def test_acknowledgements_that_cannot_be_unpacked_are_passed_over_and_those_behind_are_read() -> None:
    with MockCluster(1) as cluster:
        filled(cluster, "acks")

        offsets, row = read(cluster, "acks")

    assert (row["position"], row["error"]) == (END, None)
    assert offsets[0] == 0
    # As many as were packed may be left out.
    assert 1 + len(TOO_LARGE) <= offsets[1] <= 1 + 2 * len(TOO_LARGE)
    assert offsets[1:] == list(range(offsets[1], END))


def test_orders_that_cannot_be_unpacked_are_not_passed_over() -> None:
    with MockCluster(1) as cluster:
        filled(cluster, "commands")

        offsets, row = read(cluster, "commands")

    assert (offsets, row["position"]) == ([0], 1)
    assert row["error"]
