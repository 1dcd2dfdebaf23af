"""How the partitions of a cluster are listed and shared out, also while one of its brokers hangs."""

import pytest

from pipeline.kafka.sources.log_offsets.ask import shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from tests.support.brokers.mock_cluster import MockCluster


def settings_of(cluster: MockCluster, *, timeout_s: float) -> LogOffsetsSettings:
    return LogOffsetsSettings(
        properties={"bootstrap.servers": cluster.bootstrap, "log_level": "0"},
        topics_include=("orders",),
        topics_exclude=(),
        isolation="read_committed",
        request_timeout_s=timeout_s,
        splits=2,
    )


@pytest.mark.parametrize(("partitions", "wanted"), [(10_000, 1), (10_001, 2), (20_001, 2)])
def test_there_are_as_many_shares_as_are_worth_it_and_no_more_than_allowed(
    partitions: int, wanted: int
) -> None:
    with MockCluster() as cluster:
        cluster.create("orders", partitions)

        assert len(shares(settings_of(cluster, timeout_s=10), tasks=2)) == wanted


def test_listing_that_meets_a_broker_that_hangs_is_complete_all_the_same() -> None:
    with MockCluster() as cluster:
        cluster.create("orders", 3)
        settings = settings_of(cluster, timeout_s=2)
        for broker in (1, 2, 3):
            shares(settings, tasks=2)
            cluster.hang(broker)
            (share,) = shares(settings, tasks=2)
            cluster.answer(broker)

            assert (share.topics, share.error) == ((("orders", (0, 1, 2)),), None)
