"""Calls of a plain consumer on a follower of a real broker: topics anew, offsets by hand, another login, a transaction."""

import time
from typing import Any

import pytest
from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from assignor.clients.confluent import Follower, TransactionsUnsupportedError
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.secured import Secured
from tests.support.waiting import wait_until


def config(bootstrap: str, group: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **more,
    }


def record(follower: Follower, topic: str) -> Message:
    """A record of that topic; records of others are passed over."""
    found: list[Message] = []

    def has_come() -> bool:
        message = follower.poll(0.2)
        if message is not None and message.error() is None and message.topic() == topic:
            found.append(message)
        return bool(found)

    wait_until(has_come, what=f"a record of {topic}")
    return found[0]


def test_topics_that_are_subscribed_later_are_read_and_the_former_ones_handed_back(
    broker: EmbeddedBroker,
) -> None:
    create_topics(broker.bootstrap_servers, {"calls-a": 1, "calls-b": 1})
    for topic in ("calls-a", "calls-b"):
        produce(broker.bootstrap_servers, topic, {0: 5})
    told: list[tuple[str, list[str]]] = []

    def note(what: str) -> Any:
        return lambda partitions: told.append((what, [place.topic for place in partitions]))

    with Follower(
        config(broker.bootstrap_servers, "calls-subscribe"), ["calls-a"], on_revoked=note("first")
    ) as follower:
        follower.commit(record(follower, "calls-a"), asynchronous=False)
        follower.subscribe(["calls-b"], on_revoked=note("second"), on_gained=note("gained"))
        record(follower, "calls-b")

        assert [place.topic for place in follower.assignment()] == ["calls-b"]
        assert told == [("second", ["calls-a"]), ("gained", ["calls-b"])]
        assert follower.committed([TopicPartition("calls-a", 0)], timeout=10)[0].offset == 1


def test_stored_offsets_are_what_a_bare_commit_commits(broker: EmbeddedBroker) -> None:
    create_topics(broker.bootstrap_servers, {"calls-store": 1})
    produce(broker.bootstrap_servers, "calls-store", {0: 5})
    by_hand = config(broker.bootstrap_servers, "calls-store", **{"enable.auto.offset.store": False})

    with Follower(by_hand, ["calls-store"]) as follower:
        first = record(follower, "calls-store")
        record(follower, "calls-store")
        follower.store_offsets(first)
        follower.commit(asynchronous=False)

        assert follower.committed([TopicPartition("calls-store", 0)], timeout=10)[0].offset == 1


def test_transaction_of_a_producer_cannot_take_the_offsets_and_leaves_the_member_as_it_was(
    broker: EmbeddedBroker,
) -> None:
    create_topics(broker.bootstrap_servers, {"calls-txn": 1})
    produce(broker.bootstrap_servers, "calls-txn", {0: 5})
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "calls", "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()

    with Follower(config(broker.bootstrap_servers, "calls-txn"), ["calls-txn"]) as follower:
        message = record(follower, "calls-txn")
        offsets = follower.position([TopicPartition("calls-txn", 0)])
        with pytest.raises(TransactionsUnsupportedError, match=r"use a plain confluent_kafka\.Consumer"):
            producer.send_offsets_to_transaction(offsets, follower.consumer_group_metadata())
        producer.abort_transaction(30)
        follower.commit(message, asynchronous=False)

        assert follower.committed(offsets, timeout=10)[0].offset == 1


def test_new_credentials_open_the_cluster_and_lagwises_topics(secured: Secured) -> None:
    topics = {"calls-sasl": 1, "calls-sasl-control": 1, "calls-sasl-acks": 1}
    create_topics(secured.open_servers, topics)
    produce(secured.open_servers, "calls-sasl", {0: 5})
    secured.add_user("calls-member")
    secured.allow(
        "calls-member",
        *((AclOperation.READ, ResourceType.TOPIC, topic) for topic in topics),
        (AclOperation.READ, ResourceType.GROUP, "calls-sasl"),
        (AclOperation.WRITE, ResourceType.TOPIC, "calls-sasl-acks"),
    )
    stale = {**secured.properties("calls-member"), "sasl.password": "of-last-year"}

    with Follower(
        config(secured.servers, "calls-sasl", **stale),
        ["calls-sasl"],
        control_topic="calls-sasl-control",
        acks_topic="calls-sasl-acks",
    ) as follower:
        assert follower.poll(1.0) is None
        follower.set_sasl_credentials("calls-member", secured.password_file.read_text())

        record(follower, "calls-sasl")
        wait_until(lambda: follower.poll(0.1) is None and follower._side.is_up, what="lagwise's topics")


def test_error_of_a_listener_is_what_the_user_gets_also_if_c_code_raised_it(broker: EmbeddedBroker) -> None:
    create_topics(broker.bootstrap_servers, {"calls-error": 1})
    known: dict[str, int] = {}

    with (
        pytest.raises(KeyError, match="calls-error"),
        Follower(
            config(broker.bootstrap_servers, "calls-error"),
            ["calls-error"],
            on_gained=lambda partitions: known.pop(partitions[0].topic),
        ) as follower,
    ):
        wait_until(lambda: follower.poll(0.2), what="the error of the listener")


@pytest.mark.parametrize("listener", ["on_gained", "on_revoked"])
def test_follower_that_is_closed_by_a_listener_leaves_its_group_at_once(
    broker: EmbeddedBroker, listener: str
) -> None:
    topic = f"calls-close-{listener}"
    create_topics(broker.bootstrap_servers, {topic: 1})
    produce(broker.bootstrap_servers, topic, {0: 5})
    closed_s: list[float] = []

    def close(_partitions: list[TopicPartition]) -> None:
        closed_s.append(time.monotonic())
        follower.close()

    listeners: Any = {"on_revoked": lambda _: follower.commit(asynchronous=False), listener: close}
    follower = Follower(config(broker.bootstrap_servers, topic), [topic], **listeners)

    def read_and_move_on() -> None:
        if follower.poll(0.2):
            follower.subscribe(["calls-close-other"])

    with pytest.raises(RuntimeError, match="Consumer closed"):
        wait_until(read_and_move_on, what="the follower to be closed")

    assert time.monotonic() - closed_s[0] < 10
    wait_until(lambda: not members_of(broker, topic), what="the member to be gone", within_s=10)


def members_of(broker: EmbeddedBroker, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return admin.describe_consumer_groups([group])[group].result().members
