"""Assembly: the parts of a driver, from the configuration and the cluster that was found."""

import socket
from collections.abc import Mapping
from functools import partial
from typing import Any

from confluent_kafka.admin import AdminClient

from pipeline.config.model import Config, PlanConfig
from pipeline.decode.filters import ControlTopics, Filters
from pipeline.kafka.client import librdkafka_properties, unresolved
from pipeline.kafka.cluster import Cluster
from pipeline.kafka.confirmations import Confirmations
from pipeline.kafka.descriptions import describe_groups
from pipeline.kafka.errors import Reason, client_with_reason
from pipeline.kafka.ghosts import Brokers, GhostHunt
from pipeline.kafka.migration import MigrationWatch
from pipeline.kafka.retention import RetentionWatch
from pipeline.kafka.tokens import ready
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.publish.claim import Claim
from pipeline.publish.outbox import Publisher
from pipeline.publish.pokes import Pokes
from pipeline.run.driver import Services
from pipeline.run.readiness import Readiness
from pipeline.source.settings import SourceSettings
from pipeline.tables.store import Store, absolute

_TOLERATED_INTERVALS = 3
_LONGEST_ONCE_INTERVAL_S = 5


def admin_client(config: Config) -> tuple[AdminClient, Reason]:
    """A client of the cluster, and a function that asks it why a call got no answer."""
    return client_with_reason(AdminClient, librdkafka_properties(config))


def as_found(config: Config, found: Cluster) -> Config:
    """The configuration, with `source.offsets = "auto"` replaced by the choice for this cluster."""
    if config.source.offsets != "auto":
        return config
    offsets = "topic" if found.reads_offsets else "admin"
    return config.model_copy(update={"source": config.source.model_copy(update={"offsets": offsets})})


def build_services(
    config: Config,
    found: Cluster,
    admin: AdminClient,
    *,
    store: Store,
    owner: str,
    pokes: Pokes,
    is_once: bool,
    takes_over: bool = False,
) -> Services:
    """Everything that steps work with; nothing is contacted before they do.

    Args:
        config: Configuration of the job, from `as_found`.
        found: The cluster.
        admin: A client of it, kept for as long as the services are.
        store: The tables, in the term of this driver.
        owner: Name of this driver.
        pokes: Of the driver; they outlive its queries.
        is_once: See `Services`.
        takes_over: Publish though a driver of other tables does.
    """
    name, timeout_s = cluster_name(config, found), config.source.request_timeout_s
    properties = librdkafka_properties(config, log_level="0")
    describe = partial(describe_groups, unresolved(config), timeout_s=timeout_s)
    brokers = Brokers(properties, partial(_client, properties), describe, timeout_s=timeout_s)
    return Services(
        config=config,
        is_once=is_once,
        cluster=name,
        cluster_id=found.cluster_id,
        owner=owner,
        store=store,
        filters=build_filters(config, name),
        topics=found.topics,
        hidden=found.hidden,
        is_tried=found.is_tried,
        configs=found.configs,
        migration=MigrationWatch(admin),
        retention=RetentionWatch(admin),
        ghosts=GhostHunt(brokers=brokers),
        confirmations=Confirmations(brokers=brokers),
        publisher=Publisher(
            librdkafka_properties(config),
            topic=config.control.topic,
            cluster=name,
            timeout_s=timeout_s,
            claim=Claim(
                owner=owner,
                host=socket.gethostname(),
                root=absolute(store.root),
                tables_id=store.identity(),
            ),
            is_dry=_is_dry(config.plan),
            takes_over=takes_over,
        ),
        pokes=pokes,
    )


def _is_dry(plan: PlanConfig) -> bool:
    """Return whether no group may publish plans."""
    return plan.dry_run is True and all(rule.dry_run in {None, True} for rule in plan.groups)


def _client(properties: Mapping[str, Any]) -> AdminClient:
    return AdminClient(ready(properties))


def cluster_name(config: Config, found: Cluster) -> str:
    """The cluster's name in tables and records: the configured one, or Kafka's id."""
    return config.cluster.name or found.cluster_id


def build_filters(config: Config, cluster: str) -> Filters:
    """Return the filters of topics, groups and control messages.

    Args:
        config: Of the job.
        cluster: See `cluster_name`.
    """
    source, control = config.source, config.control
    return Filters(
        topics_include=source.topics_include,
        topics_exclude=source.topics_exclude,
        groups_include=source.groups_include,
        groups_exclude=source.groups_exclude,
        control_topics=ControlTopics(
            cluster=cluster,
            acks=control.acks_topic,
            commands=control.commands_topic,
            acks_by_prefix=control.acks_topics,
        ),
        asks_groups=source.asks_groups,
    )


def build_source(services: Services, *, query: str, once: bool, attempts: int) -> SourceSettings:
    """Settings of the streaming source.

    Args:
        services: Of the driver.
        query: Its name (`replay.ReplayContext`).
        once: True if the job ends as soon as everything is read.
        attempts: Attempts per task before Spark fails the batch.
    """
    config, source = services.config, services.config.source
    interval_s = config.trigger.interval_s
    return SourceSettings(
        properties=unresolved(config),
        storage_options=config.tables.storage_options,
        # Processes of Spark have working folders of their own.
        root=absolute(config.tables.root),
        topics=services.topics,
        filters=services.filters,
        isolation=source.isolation,
        timeout_s=source.request_timeout_s,
        most_records=source.max_offsets_per_trigger,
        most_log_end_tasks=source.log_offset_splits,
        interval_s=min(interval_s, _LONGEST_ONCE_INTERVAL_S) if once else interval_s,
        tolerated_ms=tolerance_s(config) * 1000,
        tombstones_kept_ms={topic: services.configs.tombstones_kept_ms(topic) for topic in services.topics},
        attempts=attempts,
        cluster_id=services.cluster_id,
        query=query,
        most_group_requests=source.group_requests if source.asks_groups else 0,
        # Who asks once wants to know what is so now.
        group_max_age_s=0 if once else source.group_max_age_s,
    )


def tolerance_s(config: Config) -> int:
    """Return the time for which a seen end may stay unreached: the batch after the one that sees it reaches it."""
    return max(config.plan.max_staleness_s, _TOLERATED_INTERVALS * config.trigger.interval_s)


def build_readiness(config: Config, *, started_at_ms: int) -> Readiness:
    """Readiness of a driver that has read nothing."""
    return Readiness(
        topic=OFFSETS_TOPIC,
        started_at_ms=started_at_ms,
        deadline_s=config.start.deadline_s,
        tolerance_s=tolerance_s(config),
    )
