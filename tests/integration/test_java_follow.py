"""Groups of consumers in Java on a real broker, under the assignors of `lagwise-follow.jar`."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from assignor.protocol.acks import Applied, Refused
from tests.support.brokers.broker import OFFSETS_TOPIC, admin_client, create_topics, produce
from tests.support.brokers.cluster import create_replicated_topics, proxied_cluster
from tests.support.brokers.secured import Secured
from tests.support.followers.group_members import Members, PartitionKey
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.java.java_jar import JavaJar, java_jar
from tests.support.java.java_members import (
    COOPERATIVE,
    EAGER,
    JavaHost,
    JavaMember,
    apply,
    java_member,
    none_failed,
    properties,
)
from tests.support.waiting import wait_until

MOST_LINES_OF_THE_CLIENT = 3 * 200
"""Of three members. Kafka's client logs each answer that a topic is not there, and asks without a pause."""


@pytest.fixture(scope="module")
def jar() -> JavaJar:
    return java_jar()


@pytest.fixture(scope="module")
def host(jar: JavaJar) -> Iterator[JavaHost]:
    with JavaHost(jar) as running:
        yield running


def three(
    members: Members, host: JavaHost, setup: PluginSetup, assignor: str
) -> dict[str, frozenset[PartitionKey]]:
    for _ in range(3):
        members.add(java_member(host, setup, assignor))
    return members.settled(setup.places)


def all_read(members: Members, records: int) -> bool:
    return len(set().union(*(one.read for one in members.all))) == PARTITIONS * records


def told(host: JavaHost, setup: PluginSetup, words: str, times: int) -> None:
    """Return when the members have said so of the control topic, so often."""
    wait_until(lambda: times_told(host, setup, words) == times, what=f"{times} x {words}")


def times_told(host: JavaHost, setup: PluginSetup, words: str) -> int:
    return sum(f"Control topic {setup.control} {words}" in line for line in list(host.said))


@pytest.mark.parametrize(
    ("version", "assignor"),
    [("3.9.1", EAGER), ("4.0.1", COOPERATIVE), ("4.2.0", EAGER), ("4.2.0", COOPERATIVE)],
)
def test_published_plan_is_applied_by_all(
    jar: JavaJar, setup: PluginSetup, version: str, assignor: str
) -> None:
    with JavaHost(jar, version) as host, Members() as members:
        base = three(members, host, setup, assignor)
        generation = members.generation

        apply(setup, members)
        views = [view for one in members.all for view in one.views if view.generation == generation + 1]
        wait_until(lambda: all_read(members, RECORDS), what="all records")

    assert setup.said(Refused) == []
    # In the first step of a cooperative rebalance nobody has what moves.
    moved = base[max(base)] if assignor == COOPERATIVE else frozenset()
    assert not any(view.owned & moved for view in views)
    assert none_failed(members)


def test_plain_consumer_applies_the_plan_in_the_next_rebalance(host: JavaHost, setup: PluginSetup) -> None:
    kafkas_id = admin_client(setup.bootstrap).list_topics(timeout=10).cluster_id
    with Members() as members:
        plain = [java_member(host, setup, EAGER, following=False, lagwise_cluster="") for _ in range(2)]
        for one in plain:
            members.add(one)
        base = members.settled(setup.places)
        target = all_to_one(base)
        setup.publish(setup.plan(base, target, generation=members.generation, cluster=kafkas_id))
        # The leader may read the plan only after the first.
        for _ in range(3):
            generation = members.generation
            for one in plain:
                one.rejoin()
            members.settled(setup.places, after=generation)
            if members.owned() == target:
                break

        assert members.owned() == target


def test_property_alone_applies_no_plan_when_a_member_joins(host: JavaHost, setup: PluginSetup) -> None:
    with Members() as members:
        for _ in range(2):
            members.add(java_member(host, setup, EAGER, following=False))
        base = members.settled(setup.places)
        generation = members.generation
        setup.publish(setup.plan(base, all_to_one(base), generation=generation))
        members.add(java_member(host, setup, EAGER, following=False))

        owned = members.settled(setup.places, after=generation)

        # The plan was made for two members, and they are three; once they are two again, it fits.
        assert sorted(map(len, owned.values())) == [2, 2, 2]
        assert setup.said(Applied) == []


def test_one_following_member_is_enough_for_its_group(host: JavaHost, setup: PluginSetup) -> None:
    with Members() as members:
        # The plain one joins first, and so leads.
        members.add(java_member(host, setup, EAGER, following=False))
        wait_until(lambda: members.all[0].views, what="the leader")
        members.add(java_member(host, setup, EAGER))
        members.settled(setup.places)

        apply(setup, members)


def test_group_is_assigned_by_kafkas_sticky_while_there_is_no_control_topic(
    host: JavaHost, setup: PluginSetup
) -> None:
    admin = admin_client(setup.bootstrap)
    admin.delete_topics([setup.control])[setup.control].result(10)
    with Members() as members:
        owned = three(members, host, setup, EAGER)
        told(host, setup, "cannot be read", 3)
        wait_until(lambda: all_read(members, RECORDS), what="all records")
        create_topics(setup.bootstrap, {setup.control: 1})
        told(host, setup, "is there again", 3)
        apply(setup, members)

        admin.delete_topics([setup.control])[setup.control].result(10)
        told(host, setup, "cannot be read", 6)
        lines = sum(setup.control in line and "lagwise.follow" not in line for line in list(host.said))
        assert lines < MOST_LINES_OF_THE_CLIENT
        produce(setup.bootstrap, setup.name, dict.fromkeys(range(PARTITIONS), RECORDS))
        wait_until(lambda: all_read(members, 2 * RECORDS), what="all records")
        create_topics(setup.bootstrap, {setup.control: 1})
        told(host, setup, "is there again", 6)
        apply(setup, members, epoch=2)

    assert Counter(map(len, owned.values())) == {2: 3}
    told(host, setup, "cannot be read", 6)
    assert none_failed(members)


def test_member_notices_that_the_leader_of_its_control_topic_is_silent(host: JavaHost) -> None:
    with proxied_cluster(2) as made, Members() as members:
        internal = made.cluster.internal_servers
        setup = PluginSetup(bootstrap=made.cluster.bootstrap_servers, name="java-silent")
        # All but the plans is on the other broker.
        create_replicated_topics(internal, {OFFSETS_TOPIC: 4 * [[1]]}, cleanup_policy="compact")
        create_replicated_topics(
            internal, {setup.name: PARTITIONS * [[1]], setup.control: [[2]], setup.acks: [[1]]}
        )
        for _ in range(2):
            members.add(java_member(host, setup, EAGER))
        members.settled(setup.places)
        apply(setup, members)

        made.proxies[2].black_hole()
        told(host, setup, "cannot be read (its brokers do not answer)", 2)
        produce(internal, setup.name, dict.fromkeys(range(PARTITIONS), RECORDS))
        wait_until(lambda: all_read(members, RECORDS), what="all records")
        made.proxies[2].forward()
        told(host, setup, "is there again", 2)
        apply(setup, members, epoch=2)

    assert none_failed(members)
    assert times_told(host, setup, "cannot be read") == 2


def test_member_reads_plans_as_the_user_that_its_consumer_is_as_soon_as_it_may(
    host: JavaHost, secured: Secured
) -> None:
    setup = PluginSetup.made(secured.open_servers, "java-secured")
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    secured.add_user("javas")
    secured.allow(
        "javas",
        (AclOperation.READ, topic, setup.name),
        (AclOperation.READ, group, setup.name),
        (AclOperation.WRITE, topic, setup.acks),
        # Enough to find the topic's partitions, and its end.
        (AclOperation.DESCRIBE, topic, setup.control),
    )
    login = f'username="javas" password="{secured.password_file.read_text()}";'
    config = {
        **properties(secured.servers, setup.name, [EAGER]),
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.ca),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"org.apache.kafka.common.security.scram.ScramLoginModule required {login}",
    }
    with Members() as members:
        for _ in range(2):
            members.add(JavaMember(host, config, [setup.name]))
        members.settled(setup.places)
        told(host, setup, "cannot be read", 2)
        wait_until(lambda: all_read(members, RECORDS), what="all records")
        secured.allow("javas", (AclOperation.READ, topic, setup.control))
        told(host, setup, "is there again", 2)

        apply(setup, members)

    assert none_failed(members)
    assert times_told(host, setup, "cannot be read") == 2
