import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

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

    quiet = {"log_level": "0", "socket.timeout.ms": "7000", **_SERVERS}
    assert found == {**quiet, "sasl.password": "hunter2", "client.id": "b"}
    assert unresolved(config) == {**quiet, "sasl.password": "env:KAFKA_PASSWORD", "client.id": "a"}


@pytest.mark.parametrize(("wanted", "is_heard"), [({}, False), ({"log_level": "6"}, True)])
def test_librdkafka_writes_nothing_by_itself_while_a_broker_is_away_unless_it_is_told_to(
    capfd: pytest.CaptureFixture[str], wanted: dict[str, str], *, is_heard: bool
) -> None:
    # Port 9 is discard: nobody listens.
    admin = AdminClient(librdkafka_properties(_config({"bootstrap.servers": "127.0.0.1:9", **wanted})))

    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.5)

    assert ("FAIL" in capfd.readouterr().err) is is_heard
