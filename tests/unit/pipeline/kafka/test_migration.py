"""What brokers answer about their migration policy, and what their answers come to."""

import logging
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignor.protocol.migration import POLICY, Migration
from pipeline.kafka.migration import Answer, MigrationWatch, answer_of, classified

OFF, ON, OLD, SILENT = (
    Answer(policy="disabled"),
    Answer(policy="bidirectional"),
    Answer(),
    Answer(problem="x"),
)


@pytest.mark.parametrize(
    ("answers", "migration"),
    [
        pytest.param([OFF, OFF, OFF], "disabled", id="all disabled"),
        pytest.param([OLD, OLD], "disabled", id="older than migration"),
        pytest.param([OLD, OFF], "disabled", id="in the middle of an upgrade"),
        pytest.param([OFF, ON], "possible", id="one of them"),
        pytest.param([OFF, Answer(policy="upgrade")], "possible", id="upgrade"),
        pytest.param([OFF, Answer(policy="downgrade")], "possible", id="downgrade"),
        pytest.param([OFF, Answer(policy="of a later Kafka")], "possible", id="a value not known here"),
        pytest.param([SILENT, ON], "possible", id="one is silent, one migrates"),
        pytest.param([SILENT, OFF], "unknown", id="one is silent"),
        pytest.param([SILENT, OLD], "unknown", id="one is silent, one old"),
        pytest.param([], "unknown", id="no broker"),
    ],
)
def test_every_broker_must_have_said_no(answers: list[Answer], migration: Migration) -> None:
    assert classified(dict(enumerate(answers))) == migration


def test_policy_is_read_in_letters_of_any_size() -> None:
    assert answer_of({POLICY: SimpleNamespace(value="DISABLED")}) == OFF


def test_broker_without_the_property_is_older_than_migration() -> None:
    assert answer_of({"node.id": SimpleNamespace(value="1")}) == OLD


@pytest.mark.parametrize("properties", [{}, {POLICY: SimpleNamespace(value=None)}], ids=["none", "secret"])
def test_value_that_nobody_gave_is_a_problem(properties: dict[str, Any]) -> None:
    assert answer_of(properties).problem is not None


class Cluster:
    """Stands for an admin client: policy of each broker, or the code of the error that it answers with."""

    def __init__(self, **brokers: str | int) -> None:
        self.brokers = {int(name[1:]): answer for name, answer in brokers.items()}
        self.listing: int | None = None
        """Code of the error when brokers are listed."""
        self.listed = 0
        self.now_s = 100.0

    def describe_cluster(self, *, request_timeout: float) -> "Future[Any]":
        assert 0 < request_timeout <= 3
        self.listed += 1
        nodes = [SimpleNamespace(id=broker) for broker in self.brokers]
        return done(self.listing or SimpleNamespace(nodes=nodes))

    def describe_configs(self, resources: list[Any], *, request_timeout: float) -> dict[Any, "Future[Any]"]:
        assert 0 < request_timeout <= 3
        (resource,) = resources
        answer = self.brokers[int(resource.name)]
        return {
            resource: done(answer if isinstance(answer, int) else {POLICY: SimpleNamespace(value=answer)})
        }


def done(answer: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(answer, int):
        future.set_exception(KafkaException(KafkaError(answer)))
    else:
        future.set_result(answer)
    return future


def watch_on(cluster: Any) -> MigrationWatch:
    return MigrationWatch(cluster, clock=lambda: float(cluster.now_s))


def test_answer_stands_for_half_a_minute() -> None:
    cluster = Cluster(b1="disabled", b2="disabled")
    watch = watch_on(cluster)
    assert watch() == "disabled"

    cluster.brokers[3] = "bidirectional"
    cluster.now_s += 29
    before = watch()
    cluster.now_s += 1

    assert (before, watch()) == ("disabled", "possible")
    assert cluster.listed == 2


def test_what_is_unknown_is_asked_again_soon() -> None:
    cluster = Cluster(b1="disabled", b2=KafkaError._TIMED_OUT)
    watch = watch_on(cluster)
    assert watch() == "unknown"

    cluster.brokers[2] = "disabled"
    before = watch()
    cluster.now_s += 5

    assert (before, watch()) == ("unknown", "disabled")


def test_cluster_that_does_not_answer_is_unknown_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(b1="disabled")
    cluster.listing = KafkaError._TRANSPORT

    assert watch_on(cluster)() == "unknown"
    (record,) = caplog.records
    assert "problem" in vars(record)


def test_right_that_is_denied_is_said_once_with_where_to_read_on(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(b1=KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    watch = watch_on(cluster)

    for _ in range(5):
        assert watch() == "unknown"
        cluster.now_s += 60

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "deploying-security.md" in str(vars(record)["problem"])


def test_change_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = Cluster(b1="bidirectional")
    watch = watch_on(cluster)
    watch()

    cluster.brokers[1] = "disabled"
    cluster.now_s += 60
    watch()

    assert ["refuse plans" in record.message for record in caplog.records] == [True, False]
    assert f"set {POLICY}=disabled" in caplog.records[0].message
