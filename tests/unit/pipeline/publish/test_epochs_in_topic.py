"""What the control topic says about epochs, and what it cannot make the driver do."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError

from assignor.protocol.control import encode_key, headers
from pipeline.config.model import Config, KafkaConfig
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, TopicMissingError
from pipeline.kafka.client import librdkafka_properties
from pipeline.publish.outbox import _note_epoch, _read_epochs
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


def noted(*records: tuple[Any, Any]) -> dict[str, int]:
    epochs: dict[str, int] = {}
    for key, of_record in records:
        _note_epoch(key, of_record, "c", epochs)
    return epochs


def test_highest_epoch_of_a_group_counts() -> None:
    assert noted((KEY, headers(3)), (KEY, headers(8)), (KEY, headers(5))) == {"g": 8}


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
            _read_epochs(reader, "control", "c", 5)

        reader.close()
    assert type(raised.value) is kind
