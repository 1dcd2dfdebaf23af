"""Samples of partitions: offsets of topics, and offsets and lag of groups, in the names of two exporters."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import MetricsConfig
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.text import Labels, Samples, labels_of, samples
from pipeline.operate.serve.views.facts import Facts

_MEMBER = {"member_host": "client_host", "client_id": "client_id"}
_FULL_MEMBER = {"member_host": "client_host", "consumer_id": "member_id", "client_id": "client_id"}


def member_columns(config: MetricsConfig) -> dict[str, str]:
    """Columns that name a member, by label."""
    return _FULL_MEMBER if config.member_labels == "full" else _MEMBER


def partition_samples(facts: Facts, config: MetricsConfig) -> Iterator[Samples]:
    """Samples of every partition of every topic and group."""
    topics, groups = existing(facts.topic_offsets), facts.partition_lag
    if "seglo" in config.families:
        yield from _seglo(topics, groups, config)
    if "kafka_exporter" in config.families:
        yield from _kafka_exporter(topics, groups)


def existing(topic_offsets: pa.Table) -> pa.Table:
    """Partitions that the brokers still have, as far as they report it."""
    return topic_offsets.filter(topic_offsets["deleted_at"].is_null())


def _seglo(topics: pa.Table, groups: pa.Table, config: MetricsConfig) -> Iterator[Samples]:
    log = labels_of(topics, cluster_name="cluster", topic="topic", partition="partition")
    yield samples(families.SEGLO_LATEST, log, topics["log_end_offset"])
    yield samples(families.SEGLO_EARLIEST, log, topics["log_start_offset"])
    named = {"cluster_name": "cluster", "group": "group_id", "topic": "topic", "partition": "partition"}
    owned = labels_of(groups, **named, **member_columns(config))
    yield samples(families.SEGLO_OFFSET, owned, groups["committed_offset"])
    yield samples(families.SEGLO_LAG, owned, groups["lag"])
    yield samples(families.SEGLO_LAG_SECONDS, owned, groups["lag_seconds"])


def _kafka_exporter(topics: pa.Table, groups: pa.Table) -> Iterator[Samples]:
    log = labels_of(topics, topic="topic", partition="partition")
    yield samples(families.EXPORTER_LATEST, log, topics["log_end_offset"])
    yield samples(families.EXPORTER_OLDEST, log, topics["log_start_offset"])
    yield from _replication(topics, log)
    of_group = labels_of(groups, consumergroup="group_id", topic="topic", partition="partition")
    yield samples(families.EXPORTER_OFFSET, of_group, groups["committed_offset"])
    yield samples(families.EXPORTER_LAG, of_group, groups["lag"])


def _replication(topics: pa.Table, log: Labels) -> Iterator[Samples]:
    """Leaders and replicas. If replicas are known but no leader, the preferred replica does not lead."""
    leader, replicas, in_sync = topics["leader_broker"], topics["replicas"], topics["in_sync_replicas"]
    has_none = pc.and_(pc.is_valid(replicas), pc.is_null(leader))
    is_preferred = pc.if_else(has_none, pa.scalar(False), pc.equal(leader, topics["preferred_leader"]))
    yield samples(families.EXPORTER_LEADER, log, leader)
    yield samples(families.EXPORTER_IS_PREFERRED, log, pc.cast(is_preferred, pa.int8()))
    yield samples(families.EXPORTER_REPLICAS, log, replicas)
    yield samples(families.EXPORTER_IN_SYNC, log, in_sync)
    yield samples(families.EXPORTER_UNDER_REPLICATED, log, pc.cast(pc.less(in_sync, replicas), pa.int8()))


def topic_samples(facts: Facts, config: MetricsConfig) -> Iterator[Samples]:
    """Sums by topic, for the cluster and for each group; they leave out unknown partitions."""
    keys = ["cluster", "group_id", "topic"]
    sums = facts.partition_lag.group_by(keys).aggregate([("lag", "sum"), ("committed_offset", "sum")])
    if "seglo" in config.families:
        of_topic = labels_of(sums, cluster_name="cluster", group="group_id", topic="topic")
        yield samples(families.SEGLO_TOPIC_SUM_LAG, of_topic, sums["lag_sum"])
    if "kafka_exporter" in config.families:
        exported = labels_of(sums, consumergroup="group_id", topic="topic")
        yield samples(families.EXPORTER_LAG_SUM, exported, sums["lag_sum"])
        yield samples(families.EXPORTER_OFFSET_SUM, exported, sums["committed_offset_sum"])
        counted = existing(facts.topic_offsets).group_by("topic").aggregate([("partition", "count")])
        yield samples(
            families.EXPORTER_PARTITIONS, labels_of(counted, topic="topic"), counted["partition_count"]
        )
