"""What public dashboards ask by the names of two exporters is exposed, with the labels that they select and group by.

Written down by hand from their JSON: of seglo/kafka-lag-exporter (grafana/Kafka_Lag_Exporter_Dashboard.json, 50532b6) and
strimzi/strimzi-kafka-operator (strimzi-kafka-exporter.json, 1c2d0fb). The labels of targets, such as `namespace`, are
what a scrape configuration gives.
"""

import pytest

from tests.support.operate.exposed import Exposed, exposed

STRIMZI: dict[str, tuple[str, set[str]]] = {
    "Topics": ("kafka_topic_partitions", {"topic"}),
    "Partitions": ("kafka_topic_partitions", {"topic"}),
    "Replicas": ("kafka_topic_partition_replicas", {"topic"}),
    "In Sync Replicas": ("kafka_topic_partition_in_sync_replica", {"topic"}),
    "Under Replicated Partitions": ("kafka_topic_partition_under_replicated_partition", {"topic"}),
    "Partitions not on preferred node": ("kafka_topic_partition_leader_is_preferred", {"topic"}),
    "Messages in per second": ("kafka_topic_partition_current_offset", {"topic"}),
    "Messages consumed per second": ("kafka_consumergroup_current_offset", {"consumergroup", "topic"}),
    "Lag by Consumer Group": ("kafka_consumergroup_lag", {"consumergroup", "topic"}),
    "Consumer Group Offsets": ("kafka_consumergroup_current_offset", {"consumergroup", "partition", "topic"}),
    "Consumer Group Lag": ("kafka_consumergroup_lag", {"consumergroup", "partition", "topic"}),
    "Number of Partitions": ("kafka_topic_partitions", {"topic"}),
    "Latest Offsets": ("kafka_topic_partition_current_offset", {"partition", "topic"}),
    "Oldest Offsets": ("kafka_topic_partition_oldest_offset", {"partition", "topic"}),
}
"""Metric and labels by panel."""
STRIMZI_OF_BROKERS = {
    "Partitions at minimum ISR": "kafka_cluster_partition_atminisr",
    "Partitions under minimum ISR": "kafka_cluster_partition_underminisr",
}
STRIMZI_VARIABLES = {"kafka_exporter_build_info", "kafka_consumergroup_current_offset"}
_PER_GROUP = {"cluster_name", "group"}
_PER_PARTITION = {"cluster_name", "group", "topic", "partition"}
SEGLO: dict[str, tuple[str, set[str]]] = {
    "Consumer Group Max Lag Seconds": ("kafka_consumergroup_group_max_lag_seconds", _PER_GROUP),
    "Consumer Group Lag Partition Seconds": ("kafka_consumergroup_group_lag_seconds", _PER_PARTITION),
    "Consumer Group Max Lag Offsets": ("kafka_consumergroup_group_max_lag", _PER_GROUP),
    "Consumer Group Lag Partition Offsets": ("kafka_consumergroup_group_lag", _PER_PARTITION),
    "by group: lag": ("kafka_consumergroup_group_lag_seconds", _PER_GROUP),
    "by group: sum of its offsets": ("kafka_consumergroup_group_offset", _PER_PARTITION),
    "by group: sum of latest offsets": (
        "kafka_partition_latest_offset",
        {"cluster_name", "topic", "partition"},
    ),
    "variables": ("kafka_consumergroup_group_lag", _PER_GROUP),
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Exposed:
    return exposed(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize(("metric", "labels"), [*STRIMZI.values(), *SEGLO.values()], ids=[*STRIMZI, *SEGLO])
def test_panel_is_filled(metric: str, labels: set[str], known: Exposed) -> None:
    assert labels <= known[metric]


def test_variables_of_strimzis_page_have_what_they_are_taken_from(known: Exposed) -> None:
    assert known.keys() >= STRIMZI_VARIABLES


def test_two_panels_of_strimzis_page_are_the_brokers_own_and_no_sum_of_theirs_is_doubled(
    known: Exposed,
) -> None:
    assert len(STRIMZI) + len(STRIMZI_OF_BROKERS) == 16
    assert not known.keys() & set(STRIMZI_OF_BROKERS.values())
