"""What real brokers say of groups that live, sleep, never were, or only stand in the offsets topic."""

from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.kafka.descriptions import describe_groups
from pipeline.kafka.ghosts import Brokers
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.brokers.raw_leader import led
from tests.support.waiting import wait_until

KEYS = (("ghosts", 0), ("ghosts", 1))


@pytest.fixture(scope="module")
def brokers(broker: EmbeddedBroker) -> Brokers:
    create_topics(broker.bootstrap_servers, {"ghosts": 2})
    return asking(broker.bootstrap_servers)


def asking(bootstrap: str) -> Brokers:
    # A client for each question, as the job has it.
    properties = {"bootstrap.servers": bootstrap, "log_level": "0"}
    describe = partial(describe_groups, properties, timeout_s=5)
    return Brokers(properties, lambda: admin_client(bootstrap), describe, timeout_s=5)


def committed(broker: EmbeddedBroker, group: str) -> Consumer:
    """A member of no group that has committed one partition, as users of `assign()` do."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition("ghosts", 0, 3)], asynchronous=False)
    return consumer


def test_group_of_assign_users_and_one_that_is_empty_are_not_gone(
    broker: EmbeddedBroker, brokers: Brokers
) -> None:
    committed(broker, "ghosts-assign").close()
    member = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "ghosts-member", "log_level": 0}
    )
    member.subscribe(["ghosts"])
    wait_until(lambda: member.poll(0.1) or member.assignment(), what="an assignment")
    member.close()

    assert brokers.are_gone({"ghosts-assign": KEYS, "ghosts-member": ()}) == frozenset()
    assert {"ghosts-assign"} <= (brokers.listed() or frozenset())


def test_group_that_was_deleted_and_one_that_never_was_are_gone(
    broker: EmbeddedBroker, brokers: Brokers
) -> None:
    committed(broker, "ghosts-deleted").close()
    admin = admin_client(broker.bootstrap_servers)
    admin.delete_consumer_groups(["ghosts-deleted"])["ghosts-deleted"].result()

    assert brokers.are_gone({"ghosts-deleted": KEYS, "ghosts-never": KEYS}) == {
        "ghosts-deleted",
        "ghosts-never",
    }


def test_brokers_that_do_not_answer_know_of_no_group_that_is_gone() -> None:
    # Port 9 is discard: nobody listens.
    away = asking("127.0.0.1:9")
    away._timeout_s = 0.5

    assert away.listed() is None
    assert away.are_gone({"g": KEYS}) == frozenset()


@pytest.mark.parametrize(
    "given",
    [b"\0", b"\0\1\0\0\0\1\0\2\xff\xfe\0\0\0\1\0\0\0\0"],
    ids=["ends librdkafka's process", "no UTF-8"],
)
def test_group_on_whose_description_the_client_fails_costs_no_other_group_its_own(
    broker: EmbeddedBroker, brokers: Brokers, given: bytes
) -> None:
    name = f"ghosts-bytes-{len(given)}"
    committed(broker, "ghosts-beside").close()

    with led(broker.bootstrap_servers, name, given):
        assert brokers.members([name, "ghosts-beside"]) == {"ghosts-beside": {}}
        assert brokers.are_gone({name: (), "ghosts-beside": ()}) == frozenset()
