"""What is heard of lagwise's topics, and what is written, as long as nothing goes wrong and when it does."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignor.clients.confluent import writer as confluent_writer
from assignor.clients.confluent.config import take_timeout_s
from assignor.clients.confluent.heard import Heard
from assignor.clients.confluent.reader import Names, TopicsReader
from assignor.clients.confluent.writer import AckWriter
from assignor.protocol import acks, control
from assignor.protocol.acks import AnyAck, Follows, Release
from tests.support.followers.follow_driver import A, B, head, release
from tests.support.followers.follow_plans import CLUSTER, GROUP, key_of, plan

ACCEPTED = Follows(**head(A))
PLAN = plan({"a": [0]}, {"a": [0]}, epoch=5)


@pytest.fixture
def heard() -> Heard:
    heard = Heard()
    heard.name_cluster(CLUSTER, GROUP)
    heard.set_up(is_up=True)
    return heard


def feed(heard: Heard, *said: AnyAck) -> None:
    for ack in said:
        heard.feed_ack(acks.encode_key(ack), acks.encode(ack))


def test_acknowledgements_are_taken_once_in_their_order(heard: Heard) -> None:
    feed(heard, ACCEPTED, release(A, B, partition=1))

    assert heard.take_acks() == (ACCEPTED, release(A, B, partition=1))
    assert heard.take_acks() == ()


@pytest.mark.parametrize(
    ("cluster", "group"), [(CLUSTER, f"{GROUP}-2"), (CLUSTER, GROUP[:-1]), ("elsewhere", GROUP)]
)
def test_acknowledgements_of_other_groups_are_not_decoded(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, cluster: str, group: str
) -> None:
    monkeypatch.delattr(acks, "decode")

    feed(heard, Follows(**{**head(A), "cluster": cluster, "group": group}))
    heard.feed_ack(None, b"{}")
    heard.feed_ack(acks.encode_key(ACCEPTED), None)

    assert (heard.take_acks(), heard.damaged_acks) == ((), 0)


def test_damaged_acknowledgements_of_the_group_are_counted_and_logged_once(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for value in (b"", b"\xff", b"{}", b"[" * 100_000):
            heard.feed_ack(acks.encode_key(ACCEPTED), value)

    assert (heard.take_acks(), heard.damaged_acks) == ((), 4)
    assert len(caplog.records) == 1


def test_there_is_no_plan_while_the_topics_cannot_be_read(heard: Heard) -> None:
    heard.feed_plan(key_of(PLAN), control.encode(PLAN), None)
    assert heard.plan(0) == PLAN

    heard.set_up(is_up=False)
    assert (heard.plan(0), heard.outages) == (None, 1)
    heard.set_up(is_up=False)
    heard.set_up(is_up=True)

    assert (heard.plan(0), heard.outages) == (PLAN, 1)


@pytest.mark.parametrize(
    ("config", "expected_s"),
    [({}, 310.0), ({"max.poll.interval.ms": 60_000}, 70.0), ({"max.poll.interval.ms": "1000"}, 11.0)],
)
def test_new_owner_has_as_long_as_kafka_lets_it_be_busy(config: dict[str, Any], expected_s: float) -> None:
    assert take_timeout_s(config) == expected_s


class FakeProducer:
    """Answers at the next poll, as `refusal` says."""

    made = 0
    refusal: KafkaError | None = None
    fatal: KafkaError | None = None
    """Raised at the next poll, once."""
    full = False

    def __init__(self, _config: Any) -> None:
        FakeProducer.made += 1
        self.waiting: list[Callable[..., None]] = []

    def produce(self, _topic: str, *, on_delivery: Callable[..., None], **_: Any) -> None:
        if FakeProducer.full:
            raise KafkaException(KafkaError(KafkaError._QUEUE_FULL))
        self.waiting.append(on_delivery)

    def poll(self, _timeout_s: float) -> None:
        fatal, FakeProducer.fatal = FakeProducer.fatal, None
        if fatal is not None:
            raise KafkaException(fatal)
        while self.waiting:
            self.waiting.pop(0)(FakeProducer.refusal, None)

    def purge(self) -> None:
        FakeProducer.refusal = KafkaError(KafkaError._PURGE_QUEUE)

    def flush(self, _timeout_s: float) -> None:
        self.poll(0)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> AckWriter:
    monkeypatch.setattr(confluent_writer, "Producer", FakeProducer)
    monkeypatch.setattr(FakeProducer, "made", 0)
    monkeypatch.setattr(FakeProducer, "refusal", None)
    monkeypatch.setattr(FakeProducer, "fatal", None)
    monkeypatch.setattr(FakeProducer, "full", False)
    return AckWriter({}, "acks")


def test_acknowledgement_that_arrives_is_forgotten(writer: AckWriter) -> None:
    writer.write(ACCEPTED)
    writer.look()

    assert (list(writer.undelivered), FakeProducer.made) == ([], 1)


def test_acknowledgements_that_do_not_arrive_are_kept_and_logged_once_and_the_producer_is_made_anew(
    writer: AckWriter, caplog: pytest.LogCaptureFixture
) -> None:
    FakeProducer.refusal = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    said: list[Follows | Release] = [ACCEPTED, release(A, B, partition=1)]
    for ack in said:
        writer.write(ack)
        writer.look()
    FakeProducer.refusal = None
    writer.write(ACCEPTED)
    writer.look()

    assert list(writer.undelivered) == said
    assert FakeProducer.made == 3
    assert len(caplog.records) == 1
    assert "acks" in caplog.text


def test_fatal_error_of_the_producer_is_not_the_users_and_what_it_had_counts_as_undelivered(
    writer: AckWriter,
) -> None:
    """As of one that has no right at all to write, and so gets no producer id."""
    writer.write(ACCEPTED)
    FakeProducer.fatal = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    FakeProducer.refusal = KafkaError(KafkaError._FATAL)

    writer.look()
    writer.write(ACCEPTED)

    assert list(writer.undelivered) == [ACCEPTED]
    assert FakeProducer.made == 2


def test_full_queue_counts_as_undelivered(writer: AckWriter) -> None:
    FakeProducer.full = True

    writer.write(ACCEPTED)

    assert list(writer.undelivered) == [ACCEPTED]


def test_what_is_under_way_when_the_writer_is_stopped_counts_as_undelivered(writer: AckWriter) -> None:
    writer.write(ACCEPTED)

    writer.stop()

    assert list(writer.undelivered) == [ACCEPTED]


def test_new_credentials_are_those_of_every_later_client() -> None:
    config = {"group.id": "g", "bootstrap.servers": "127.0.0.1:1", "sasl.password": "old", "log_level": 0}
    names = Names(control="c", acks="a", cluster=None, group="g")
    reader, writer = TopicsReader(config, names, Heard()), AckWriter(config, "a")

    reader.set_sasl_credentials("me", "new")
    writer.set_sasl_credentials("me", "new")

    for made in (reader._config, writer._config):
        assert (made["sasl.username"], made["sasl.password"]) == ("me", "new")
