import pytest

from pipeline.config_model import Config, KafkaConfig, SourceConfig
from pipeline.kafka_client import librdkafka_properties, unresolved

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

    assert found == {**_SERVERS, "socket.timeout.ms": "7000", "sasl.password": "hunter2", "client.id": "b"}
    assert unresolved(config) == {
        **_SERVERS,
        "socket.timeout.ms": "7000",
        "sasl.password": "env:KAFKA_PASSWORD",
        "client.id": "a",
    }
