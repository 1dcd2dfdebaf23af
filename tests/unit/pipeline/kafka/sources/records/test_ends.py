"""Refusals of leaders and of listings: one about the offsets topic has a class of its own."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from pipeline.errors import (
    AccessRefusedError,
    AuthenticationError,
    BrokerUnavailableError,
    OffsetsRefusedError,
    TopicMissingError,
)
from pipeline.kafka.list_offsets.question import LeaderAnswer
from pipeline.kafka.sources.records import ends
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.kafka.topic_configs import OFFSETS_TOPIC

NO_RIGHT = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


def error_of(
    monkeypatch: pytest.MonkeyPatch, topic: str, *, listed: KafkaError | None, leader: KafkaError | None
) -> Exception:
    topics = {topic: SimpleNamespace(error=listed, partitions=[0])}
    answer = LeaderAnswer(None, observed_at_ms=0, refusal=leader)
    monkeypatch.setattr(
        ends, "Leaders", lambda *_: SimpleNamespace(relisted=lambda **_: SimpleNamespace(topics=topics))
    )
    monkeypatch.setattr(
        ends,
        "Question",
        lambda *_, **__: SimpleNamespace(answers=lambda wanted: dict.fromkeys(wanted, answer)),
    )
    client: Any = None
    with pytest.raises((AccessRefusedError, BrokerUnavailableError), match=topic) as raised:
        EndsAsker(client, (topic,), timeout_s=1)()
    return raised.value


@pytest.mark.parametrize(
    "where", [{"listed": NO_RIGHT, "leader": None}, {"listed": None, "leader": NO_RIGHT}]
)
def test_refused_offsets_topic_is_told_from_other_topics(
    monkeypatch: pytest.MonkeyPatch, where: dict[str, KafkaError | None]
) -> None:
    assert type(error_of(monkeypatch, OFFSETS_TOPIC, **where)) is OffsetsRefusedError
    assert type(error_of(monkeypatch, "acks", **where)) is AccessRefusedError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.SASL_AUTHENTICATION_FAILED, AuthenticationError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicMissingError),
    ],
)
def test_other_failure_keeps_its_class(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    assert type(error_of(monkeypatch, OFFSETS_TOPIC, listed=KafkaError(code), leader=None)) is kind
