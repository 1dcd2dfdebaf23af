"""A topic's configuration is asked for again when the broker that was asked is silent, and not when it refuses."""

from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

from pipeline.cluster import TopicConfigs

_RETENTION = "delete.retention.ms"


class FlakyAdmin:
    """Fails with the errors in turn, one for each question, then answers.

    Attributes:
        asked: Topics, in the order of the questions.
        listings: How often it was asked for topics.
    """

    def __init__(self, *codes: int) -> None:
        self.asked: list[str] = []
        self.listings = 0
        self._codes = list(codes)

    def list_topics(self, *, timeout: float) -> None:
        assert timeout > 0
        self.listings += 1

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, "Future[dict[str, ConfigEntry]]"]:
        assert request_timeout > 0
        (resource,) = resources
        self.asked.append(resource.name)
        future: Future[dict[str, ConfigEntry]] = Future()
        if self._codes:
            future.set_exception(KafkaException(KafkaError(self._codes.pop(0))))
        else:
            future.set_result({_RETENTION: ConfigEntry(_RETENTION, "7")})
        return {resource: future}


def asked_of(admin: FlakyAdmin, *topics: str) -> TopicConfigs:
    return TopicConfigs(cast("Any | AdminClient", admin), topics, timeout_s=1)


def test_silence_is_followed_by_another_question_to_whoever_is_named_then() -> None:
    admin = FlakyAdmin(KafkaError._TIMED_OUT)

    configs = asked_of(admin, "t")

    assert configs.value("t", _RETENTION) == "7"
    assert (admin.asked, admin.listings) == (["t", "t"], 1)


def test_topics_that_were_answered_are_not_asked_for_again() -> None:
    admin = FlakyAdmin(KafkaError._TIMED_OUT)

    configs = asked_of(admin, "silent", "answered")

    assert configs.value("answered", _RETENTION) == configs.value("silent", _RETENTION) == "7"
    assert admin.asked == ["silent", "answered", "silent"]


def test_refusal_is_final_and_said(caplog: pytest.LogCaptureFixture) -> None:
    admin = FlakyAdmin(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    configs = asked_of(admin, "t")

    assert configs.value("t", _RETENTION) is None
    assert admin.asked == ["t"]
    assert len(caplog.records) == 1


def test_lasting_silence_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    admin = FlakyAdmin(*[KafkaError._TIMED_OUT] * 10)

    configs = asked_of(admin, "t")

    assert configs.value("t", _RETENTION) is None
    assert len(admin.asked) == 3
    assert len(caplog.records) == 1
