from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from pipeline.config.model import Config, KafkaConfig, SourceConfig
from pipeline.kafka.client import librdkafka_properties, unresolved
from tests.support.brokers.mock_cluster import MockCluster

_SERVERS = {"bootstrap.servers": "b:1"}


def _config(properties: dict[str, str]) -> Config:
    return Config(
        kafka=KafkaConfig(properties=_SERVERS | properties), source=SourceConfig(request_timeout_s=7)
    )


def test_broker_that_takes_requests_and_never_answers_counts_as_down_when_a_question_is_given_up() -> None:
    assert unresolved(_config({}))["socket.timeout.ms"] == "7000"
    assert unresolved(_config({"socket.timeout.ms": "9"}))["socket.timeout.ms"] == "9"


def test_librdkafka_gets_secrets_and_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    config = _config({"sasl.password": "env:KAFKA_PASSWORD", "client.id": "a"})

    found = librdkafka_properties(config, **{"client.id": "b"})

    added = {"log_level": "0", "allow.auto.create.topics": "false", "socket.timeout.ms": "7000", **_SERVERS}
    assert found == {**added, "sasl.password": "hunter2", "client.id": "b"}
    assert unresolved(config) == {**added, "sasl.password": "env:KAFKA_PASSWORD", "client.id": "a"}


@pytest.mark.parametrize("make", [AdminClient, Producer], ids=["admin", "producer"])
def test_client_that_only_asks_for_a_topic_does_not_make_it(
    make: Callable[..., AdminClient | Producer],
) -> None:
    with MockCluster() as cluster:
        client = make(librdkafka_properties(_config({"bootstrap.servers": cluster.bootstrap})))

        for _ in range(2):
            assert client.list_topics("gone", timeout=10).topics["gone"].error is not None


@pytest.mark.parametrize(("wanted", "is_logged"), [({}, False), ({"log_level": "6"}, True)])
def test_librdkafka_writes_nothing_by_itself_while_a_broker_is_away_unless_it_is_told_to(
    capfd: pytest.CaptureFixture[str], wanted: dict[str, str], *, is_logged: bool
) -> None:
    # Port 9 is discard: nobody listens.
    admin = AdminClient(librdkafka_properties(_config({"bootstrap.servers": "127.0.0.1:9", **wanted})))

    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.5)

    assert ("FAIL" in capfd.readouterr().err) is is_logged
