"""Static members in Java (KIP-345) and members that commit in transactions, under the assignors that follow plans."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from assignor.protocol.acks import Refused
from tests.support.broker import create_topics
from tests.support.flow import Flow
from tests.support.java_jar import java_jar
from tests.support.java_members import (
    COOPERATIVE,
    EAGER,
    JavaHost,
    JavaMember,
    apply,
    java_member,
    none_failed,
    properties,
)
from tests.support.plugin_members import Members
from tests.support.plugin_setup import PARTITIONS, RECORDS, PluginSetup
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    with JavaHost(java_jar()) as running:
        yield running


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_static_members_come_back_to_their_part_of_a_plan_without_a_rebalance_and_follow_on(
    host: JavaHost, setup: PluginSetup, assignor: str
) -> None:
    with Members() as members:
        for name in "abc":
            members.add(java_member(host, setup, assignor, group_instance_id=name))
        members.settled(setup.places)
        apply(setup, members)
        generation, before = members.generation, {one.now.member_id for one in members.all}
        # The leader is one of them.
        for name, old in zip("abc", list(members.all), strict=True):
            members.stop(old)
            back = members.add(java_member(host, setup, assignor, group_instance_id=name))
            members.settled(setup.places)
            assert back.now.owned == old.now.owned
        assert members.generation == generation
        assert before.isdisjoint(one.now.member_id for one in members.all)

        apply(setup, members, epoch=2)

    assert setup.said(Refused) == []
    assert none_failed(members)


def copied(setup: PluginSetup, topic: str) -> Counter[bytes]:
    """Where the records were that committed transactions have written."""
    reader = Consumer(
        {
            "bootstrap.servers": setup.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    seen = Counter[bytes]()
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while (message := reader.poll(10)) is not None and message.error() is None:
            seen[message.value() or b""] += 1
    finally:
        reader.close()
    return seen


def test_plans_move_partitions_of_transactional_members_and_no_record_is_written_twice(
    host: JavaHost, setup: PluginSetup
) -> None:
    copies = f"{setup.name}-copies"
    create_topics(setup.bootstrap, {copies: 1})
    config = {**properties(setup.bootstrap, setup.name, [EAGER]), "isolation.level": "read_committed"}
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        for _ in range(3):
            members.add(JavaMember(host, config, [setup.name], copies_to=copies))
        members.settled(setup.places)
        apply(setup, members)
        apply(setup, members, epoch=2)
        flow.end()
        records = PARTITIONS * (RECORDS + flow.produced)
        wait_until(lambda: copied(setup, copies).total() >= records, what="every record copied")

    written = copied(setup, copies)
    assert set(written.values()) == {1}
    assert len(written) == records
    assert setup.said(Refused) == []
    assert none_failed(members)
