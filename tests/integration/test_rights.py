"""The rights that deploying-security.md lists, each taken away: what follows from it is unknown and said once, or it is named.

One user for each right that is missing, all on one broker, and no Spark: what asks is called as a batch does.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pipeline.config.model import Config, ControlConfig, KafkaConfig
from pipeline.errors import AccessRefusedError
from pipeline.kafka import cluster
from pipeline.kafka.descriptions import describe_groups
from pipeline.kafka.ghosts import Brokers
from pipeline.kafka.list_offsets.leaders import Leaders
from pipeline.kafka.migration import MigrationWatch
from pipeline.kafka.positions import REFUSED, Span
from pipeline.kafka.retention import RetentionWatch
from pipeline.kafka.sources.log_offsets.topics_gone import confirm_gone
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.kafka.sources.records.settings import ReadSettings
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.operate.cli.orders.topic import orders_topic
from pipeline.planning.memory import PlanRecord
from pipeline.publish.outbox import PlansInTopic, Publisher
from tests.support.brokers.broker import produce
from tests.support.brokers.secured import Right, Secured
from tests.support.waiting import wait_until

CONTROL = ControlConfig(topic="rights.control", acks_topic="rights.acks", commands_topic="rights.commands")
TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
CONFIGS, DESCRIBE, READ, WRITE = (
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.DESCRIBE,
    AclOperation.READ,
    AclOperation.WRITE,
)
# Kafka's code of the cluster as a resource, which this client calls a broker.
CLUSTER = ResourceType.BROKER
WATCHED, GHOST = "rights-watched", "rights-ghost"
TIMEOUT_S = 10.0
BATCHES = 3
HOUR_MS = 3_600_000
# Nothing here is Kafka's default: none can pass for an answer.
SETTINGS = {OFFSETS_TOPIC: 30 * HOUR_MS, CONTROL.acks_topic: 2 * HOUR_MS, CONTROL.commands_topic: 3 * HOUR_MS}
LARGEST_RECORD = 50_000

REQUIRED: dict[str, Right] = {
    "read offsets": (READ, TOPIC, OFFSETS_TOPIC),
    "read acks": (READ, TOPIC, CONTROL.acks_topic),
    "read commands": (READ, TOPIC, CONTROL.commands_topic),
    "read control": (READ, TOPIC, CONTROL.topic),
    "write control": (WRITE, TOPIC, CONTROL.topic),
    "write transaction": (WRITE, TRANSACTION, "lagwise-*"),
    "describe own groups": (DESCRIBE, GROUP, "lagwise-*"),
    "describe watched topic": (DESCRIBE, TOPIC, WATCHED),
}
OPTIONAL: dict[str, Right] = {
    "migration": (CONFIGS, CLUSTER, "kafka-cluster"),
    OFFSETS_TOPIC: (CONFIGS, TOPIC, OFFSETS_TOPIC),
    CONTROL.acks_topic: (CONFIGS, TOPIC, CONTROL.acks_topic),
    CONTROL.commands_topic: (CONFIGS, TOPIC, CONTROL.commands_topic),
    CONTROL.topic: (CONFIGS, TOPIC, CONTROL.topic),
    "ghosts": (DESCRIBE, GROUP, GHOST),
    "retention": (CONFIGS, TOPIC, WATCHED),
}
KNOWN: dict[str, Any] = {
    **SETTINGS,
    CONTROL.topic: LARGEST_RECORD - 4096,
    "migration": "disabled",
    "ghosts": frozenset({GHOST}),
    "retention": {WATCHED: 5 * HOUR_MS},
}
UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(SETTINGS),
    # The setting, which is a limit of lagwise's own.
    CONTROL.topic: CONTROL.max_record_bytes,
    "migration": "unknown",
    "ghosts": frozenset(),
    "retention": {},
}


def user_without(name: str) -> str:
    return f"rights-without-{name.replace(' ', '-')}"


@pytest.fixture(scope="module")
def guarded(secured: Secured) -> Iterator[Secured]:
    """The topics, and a user for each right; nobody has the one that it is named for."""
    _create_topics(secured)
    rights = REQUIRED | OPTIONAL
    for name in (*rights, "nothing"):
        secured.add_user(user_without(name))
        secured.allow(user_without(name), *(right for other, right in rights.items() if other != name))

    def is_in_force() -> bool:
        # Of the last user; what was allowed before holds before.
        with suppress(AccessRefusedError, KafkaException):
            return _figures(secured.properties(user_without("nothing"))) == KNOWN
        return False

    wait_until(is_in_force, what="the rights to take effect")
    yield secured
    _set_retention(secured, OFFSETS_TOPIC, 24 * HOUR_MS)


def _create_topics(secured: Secured) -> None:
    wanted = [
        NewTopic(CONTROL.topic, 1, 1, config={"max.message.bytes": str(LARGEST_RECORD)}),
        *(NewTopic(name, 1, 1) for name in (CONTROL.acks_topic, CONTROL.commands_topic, WATCHED)),
    ]
    for future in secured.admin.create_topics(wanted).values():
        future.result(timeout=TIMEOUT_S)
    for topic, kept_ms in SETTINGS.items():
        _set_retention(secured, topic, kept_ms)
    _set_retention(secured, WATCHED, 5 * HOUR_MS, name="retention.ms")
    for topic in (CONTROL.acks_topic, CONTROL.commands_topic):
        produce(secured.open_servers, topic, {0: 1})


def _set_retention(secured: Secured, topic: str, kept_ms: int, *, name: str = "delete.retention.ms") -> None:
    entry = ConfigEntry(name, str(kept_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(TOPIC, topic, incremental_configs=[entry])
    for future in secured.admin.incremental_alter_configs([resource]).values():
        future.result(timeout=TIMEOUT_S)


def _figures(properties: Mapping[str, str]) -> dict[str, Any]:
    """All that hangs on an optional right, asked for as in a start and some batches."""
    admin = AdminClient({**properties})
    found = cluster.inspect(admin, CONTROL, timeout_s=TIMEOUT_S)
    watch = MigrationWatch(admin)
    describe = partial(describe_groups, properties, timeout_s=TIMEOUT_S)
    brokers = Brokers(properties, lambda: AdminClient({**properties}), describe, timeout_s=TIMEOUT_S)
    retention = RetentionWatch(admin)
    retention([WATCHED])
    wait_until(lambda: all(future.done() for future in retention._open.values()), what="an answer")
    for _ in range(BATCHES):
        found.configs.ask_again()
        figures = {
            **{topic: found.configs.tombstones_kept_ms(topic) for topic in SETTINGS},
            CONTROL.topic: found.configs.max_record_bytes,
            "migration": watch(),
            "ghosts": brokers.are_gone({GHOST: ((WATCHED, 0),)}),
            "retention": retention([WATCHED]),
        }
    return figures


def test_user_with_every_right_knows_all_and_hears_nothing_of_rights(
    guarded: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    assert _figures(guarded.properties(user_without("nothing"))) == KNOWN
    assert not [record for record in caplog.records if "deploying-security.md" in str(vars(record))]


@pytest.mark.parametrize("name", OPTIONAL)
def test_without_an_optional_right_its_figure_is_unknown_and_that_is_said_once(
    guarded: Secured, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    figures = _figures(guarded.properties(user_without(name)))

    assert figures == KNOWN | {name: UNKNOWN[name]}
    (said,) = [record for record in caplog.records if "deploying-security.md" in str(vars(record))]
    assert said.levelno == logging.WARNING
    assert "uthorization failed" in str(vars(said))
    if name in (*SETTINGS, CONTROL.topic):
        assert vars(said)["topic"] == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "write transaction",
            "transactional id lagwise-rights cannot be used: .*Transactional Id authorization failed",
        ),
        (
            "describe own groups",
            "topic rights.control .* group lagwise-control-reader: .*Group authorization",
        ),
        ("read control", "topic rights.control could not be read .*opic authorization failed"),
        (
            "write control",
            "plans could not be published on topic rights.control: .*opic authorization failed",
        ),
    ],
)
def test_right_that_plans_need_is_named_with_what_it_is_for(guarded: Secured, name: str, reason: str) -> None:
    properties = guarded.properties(user_without(name))
    publisher = Publisher(properties, topic=CONTROL.topic, cluster="rights", timeout_s=TIMEOUT_S)

    with pytest.raises(AccessRefusedError, match=rf"{reason}.*deploying-security\.md lists the rights"):
        _start_and_publish(publisher)


def _start_and_publish(publisher: Publisher) -> None:
    def on_connected(plans_in_topic: PlansInTopic) -> None:
        plans_in_topic()

    publisher.unavailable(on_connected)
    publisher.publish([PlanRecord("g", 1, None)])


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("read offsets", OFFSETS_TOPIC),
        ("read acks", CONTROL.acks_topic),
        ("read commands", CONTROL.commands_topic),
    ],
)
def test_right_that_records_need_is_named_with_its_topic(guarded: Secured, name: str, topic: str) -> None:
    properties = guarded.properties(user_without(name))
    asker = EndsAsker(lambda: AdminClient(properties), (topic,), timeout_s=TIMEOUT_S)

    with pytest.raises(
        AccessRefusedError, match=rf"topic {topic} cannot be .*deploying-security\.md lists the rights"
    ):
        asker()


def test_topic_that_may_not_be_described_is_not_gone(guarded: Secured) -> None:
    properties = guarded.properties(user_without("describe watched topic"))
    leaders = Leaders(lambda: AdminClient(properties))

    assert WATCHED not in leaders.listing(timeout_s=TIMEOUT_S).topics
    found = confirm_gone(leaders, [WATCHED], timeout_s=TIMEOUT_S)

    assert found.remaining == {}
    assert "may not describe the topic" in found.unconfirmed[WATCHED]


@pytest.mark.parametrize(("missing", "is_known"), [("nothing", False), ("ghosts", True)])
def test_group_that_may_not_be_described_is_not_called_unknown_to_the_cluster(
    guarded: Secured, missing: str, is_known: bool
) -> None:
    kafka = KafkaConfig(properties=guarded.properties(user_without(missing)))

    with orders_topic(Config(kafka=kafka, control=CONTROL)) as topic:
        assert topic.knows_group(GHOST) == is_known


def test_topic_that_may_be_described_and_not_read_is_read_by_nobody_and_says_why(guarded: Secured) -> None:
    # Describe alone shows where logs end.
    user = "rights-describes-acks"
    guarded.add_user(user)
    guarded.allow(user, (DESCRIBE, TOPIC, CONTROL.acks_topic))
    settings = ReadSettings(properties=guarded.properties(user), timeout_s=TIMEOUT_S)
    span = Span(topic=CONTROL.acks_topic, partition=0, start=0, end=1)

    def why() -> str:
        (*_, rows) = consume([span], settings)
        assert isinstance(rows, list)
        return str(rows[0]["error"])

    refused = f"{REFUSED}: Fetch from broker 1 failed: Broker: Topic authorization failed"
    wait_until(lambda: why() == refused, what="the reason")
