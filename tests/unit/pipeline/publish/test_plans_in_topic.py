"""What the control topic says about epochs, and what it cannot make the driver do."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError

from assignor.protocol.control import encode_key, headers
from pipeline.config.model import Config, KafkaConfig
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, TopicMissingError
from pipeline.kafka.client import librdkafka_properties
from pipeline.planning.memory import PlanInTopic
from pipeline.publish.outbox import _note_plan, _read_plans
from tests.support.brokers.mock_cluster import MockCluster

KEY = encode_key("c", "g")
FOREIGN: list[tuple[str, bytes | None, Any]] = [
    ("no key", None, headers(9)),
    ("key of somebody else", b"{}", headers(9)),
    ("epoch in words", KEY, [("epoch", b"nine")]),
    ("negative epoch", KEY, headers(-9)),
    ("epoch that fits no column", KEY, headers(2**63)),
    ("last epoch that fits a column", KEY, headers(2**63 - 1)),
]


def plans_of(*records: tuple[Any, Any, bytes | None]) -> dict[str, PlanInTopic]:
    plans: dict[str, PlanInTopic] = {}
    for key, of_record, value in records:
        message: Any = SimpleNamespace(
            key=lambda key=key: key,
            headers=lambda found=of_record: found,
            value=lambda value=value: value,
        )
        _note_plan(message, "c", plans)
    return plans


def noted(*records: tuple[Any, Any]) -> dict[str, int]:
    return {group: one.epoch for group, one in plans_of(*((*one, None) for one in records)).items()}


def test_highest_epoch_of_a_group_counts() -> None:
    assert noted((KEY, headers(3)), (KEY, headers(8)), (KEY, headers(5))) == {"g": 8}


@pytest.mark.parametrize(
    ("value", "valid_until_ms"),
    [
        (b'{"schema":1,"valid_until":"1970-01-01T00:01:00.000Z"}', 60_000),
        (None, 0),
        (b"", 0),
        (b"{}", 0),
        (b'{"valid_until":"soon"}', 0),
        (b"\xff", 0),
    ],
)
def test_plan_with_the_highest_epoch_is_valid_as_long_as_its_value_says(
    value: bytes | None, valid_until_ms: int
) -> None:
    older = b'{"valid_until":"1970-01-01T00:02:00.000Z"}'

    found = plans_of((KEY, headers(3), older), (KEY, headers(8), value), (KEY, headers(5), older))

    assert found == {"g": PlanInTopic(8, valid_until_ms)}


def test_groups_of_other_clusters_do_not_count() -> None:
    assert noted((encode_key("other", "g"), headers(3))) == {}


@pytest.mark.parametrize(
    "of_record", [None, [], [("epoch", None)]], ids=["no headers", "no epoch", "null epoch"]
)
def test_record_without_an_epoch_counts_as_epoch_zero(of_record: Any) -> None:
    assert noted((KEY, of_record)) == {"g": 0}


@pytest.mark.parametrize(
    ("key", "of_record"), [case[1:] for case in FOREIGN], ids=[case[0] for case in FOREIGN]
)
def test_record_that_is_not_ours_is_passed_over(key: Any, of_record: Any) -> None:
    assert noted((KEY, headers(3)), (key, of_record)) == {"g": 3}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicMissingError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessRefusedError),
        (KafkaError.LEADER_NOT_AVAILABLE, BrokerUnavailableError),
    ],
)
def test_topic_of_which_nothing_is_known_is_not_taken_for_an_empty_one(
    code: int, kind: type[Exception]
) -> None:
    with MockCluster() as cluster:
        cluster.create("control", 2)
        cluster.refuse("control", code)
        kafka = KafkaConfig(properties={"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
        reader = Consumer(librdkafka_properties(Config(kafka=kafka)))

        with pytest.raises((BrokerUnavailableError, AccessRefusedError)) as raised:
            _read_plans(reader, "control", "c", 5)

        reader.close()
    assert type(raised.value) is kind
