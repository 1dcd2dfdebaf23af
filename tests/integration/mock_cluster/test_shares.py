"""How the partitions of a cluster are listed and shared out, also while one of its brokers hangs."""

import pytest

from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.log_offsets.source import LogOffsetsReader
from tests.support.mock_cluster import MockCluster


def reader_of(cluster: MockCluster, *, timeout_s: float) -> LogOffsetsReader:
    return LogOffsetsReader(
        LogOffsetsSettings(
            properties={"bootstrap.servers": cluster.bootstrap, "log_level": "0"},
            topics_include=("orders",),
            topics_exclude=(),
            isolation="read_committed",
            request_timeout_s=timeout_s,
            splits=2,
        )
    )


@pytest.mark.parametrize(("partitions", "shares"), [(5_000, 1), (5_001, 2), (12_000, 2)])
def test_there_are_as_many_shares_as_are_worth_it_and_no_more_than_allowed(
    partitions: int, shares: int
) -> None:
    with MockCluster() as cluster:
        cluster.create("orders", partitions)
        reader = reader_of(cluster, timeout_s=10)

        assert len(reader.partitions({"tick": 0}, {"tick": 1})) == shares


def test_listing_that_meets_a_broker_that_hangs_is_complete_all_the_same() -> None:
    with MockCluster() as cluster:
        cluster.create("orders", 3)
        reader = reader_of(cluster, timeout_s=2)
        for broker in (1, 2, 3):
            reader.partitions({"tick": 0}, {"tick": 1})
            cluster.hang(broker)
            (share,) = reader.partitions({"tick": 0}, {"tick": 1})
            cluster.answer(broker)

            assert (share.topics, share.error) == ([("orders", [0, 1, 2])], None)
