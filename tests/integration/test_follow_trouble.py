"""Whatever becomes of lagwise's topics: consuming goes on, and following comes back by itself."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.brokers.secured import Right, Secured
from tests.support.followers.follow_plans import one_moved
from tests.support.followers.follow_processes import Processes
from tests.support.followers.follow_trouble import (
    AWAY,
    BACK,
    apply_a_plan,
    assert_unharmed,
    both_say,
    goes_on,
    start,
)
from tests.support.waiting import wait_until

Make: TypeAlias = Callable[[str], Processes]


@pytest.fixture
def plain(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Make]:
    made: list[Processes] = []

    def make(name: str) -> Processes:
        made.append(Processes(broker.bootstrap_servers, name, tmp_path, partitions=4))
        return made[-1].__enter__()

    yield make
    for processes in made:
        processes.__exit__(None, None, None)


def test_members_that_start_before_the_topics_are_there_follow_once_they_are(plain: Make) -> None:
    processes = plain("early")
    delete(processes.bootstrap, processes.control, processes.acks)
    for who in "ab":
        processes.start(who)
    processes.base(2)
    both_say(processes, AWAY)
    goes_on(processes)

    create_topics(processes.bootstrap, {processes.control: 1, processes.acks: 1})
    both_say(processes, BACK)
    apply_a_plan(processes)

    assert_unharmed(processes)


def test_deleted_topics_stop_nothing_and_new_ones_are_followed(plain: Make) -> None:
    processes = plain("deleted")
    start(processes)

    delete(processes.bootstrap, processes.control, processes.acks)
    both_say(processes, AWAY)
    goes_on(processes)
    assert (
        admin_client(processes.bootstrap)
        .list_topics(timeout=10)
        .topics.keys()
        .isdisjoint({processes.control, processes.acks})
    )
    create_topics(processes.bootstrap, {processes.control: 1, processes.acks: 1})
    both_say(processes, BACK)
    apply_a_plan(processes)

    assert_unharmed(processes)


def test_damaged_records_on_both_topics_are_ignored(plain: Make) -> None:
    processes = plain("damaged")
    start(processes)
    _, _, base = processes.base(2)
    cluster = json.dumps({"cluster": processes.cluster, "group": processes.group}, separators=(",", ":"))
    of_acks = f'{cluster[:-1]},"kind":"release","id":"{processes.topic}-0"}}'
    producer = Producer({"bootstrap.servers": processes.bootstrap, "log_level": 0})
    for key, topic in ((cluster, processes.control), (of_acks, processes.acks)):
        for value in (
            b"",
            b"\xff",
            b"{}",
            b"[" * 100_000,
            b'{"schema":1,"v":1,"epoch":' + b"9" * 5000 + b"}",
        ):
            producer.produce(topic, key=key.encode(), value=value, partition=0)
    assert producer.flush(10) == 0

    both_say(processes, "control record of this group cannot be decoded")
    goes_on(processes)
    apply_a_plan(processes)

    assert base
    assert processes.logged("acknowledgement cannot be decoded") == ["a", "b"]
    assert_unharmed(processes)


def delete(bootstrap: str, *topics: str) -> None:
    admin = admin_client(bootstrap)
    for future in admin.delete_topics(list(topics)).values():
        future.result()
    wait_until(
        lambda: admin.list_topics(timeout=10).topics.keys().isdisjoint(topics), what=f"{topics} deleted"
    )


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.WRITE], ids=["read", "write"])
def test_rights_taken_away_stop_nothing_and_given_back_are_used(
    secured: Secured, tmp_path: Path, operation: AclOperation
) -> None:
    user, name = f"trouble-{operation.name}", f"forbidden-{operation.name}".lower()
    secured.add_user(user)
    with Processes(
        secured.open_servers, name, tmp_path, partitions=4, config=secured.properties(user)
    ) as processes:
        rights: list[Right] = [
            *(
                (AclOperation.READ, ResourceType.TOPIC, topic)
                for topic in (processes.topic, processes.control)
            ),
            *(
                (AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
                for topic in (processes.control, processes.acks)
            ),
            (AclOperation.READ, ResourceType.TOPIC, processes.acks),
            (AclOperation.WRITE, ResourceType.TOPIC, processes.acks),
            (AclOperation.READ, ResourceType.GROUP, processes.group),
        ]
        secured.allow(user, *rights)
        start(processes)

        forbid(secured, user, operation, processes.acks)
        generation, ids, base = processes.base(2)
        processes.publish(generation, base, one_moved(base, ids["a"], ids["b"]))
        both_say(processes, AWAY if operation == AclOperation.READ else "cannot be written")
        goes_on(processes)
        secured.allow(user, (operation, ResourceType.TOPIC, processes.acks))
        if operation == AclOperation.READ:
            both_say(processes, BACK)
        apply_a_plan(processes)

        assert_unharmed(processes)


def forbid(secured: Secured, user: str, operation: AclOperation, topic: str) -> None:
    made = partial(
        AclBindingFilter,
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    for future in secured.admin.delete_acls([made()]).values():
        removed: list[AclBinding] = future.result(timeout=10)
        assert len(removed) == 1
