"""Groups of `group.protocol=consumer` on real brokers that have lagwise's assignor, of the oldest and the newest Kafka."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_port
from pipeline.local.java import find_tool
from tests.support.brokers.broker import SMALL, admin_client, create_offsets_topic, create_topics, produce
from tests.support.brokers.secured import secured_broker
from tests.support.followers.broker_group import BrokerGroup, ConfluentMember, java_member
from tests.support.followers.group_members import Members, ThreadedMember
from tests.support.java.broker_jar import ASSIGNOR, NEWEST, OF_THE_DEMO, OLDEST, brokers_with_jar
from tests.support.java.java_apps import Owned
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import JavaHost, JavaMember
from tests.support.waiting import wait_until

PARTITIONS = 6
RECORDS = 20
CONTROL = "plans"
ASSIGNORS = {"group.consumer.assignors": f"uniform,range,{ASSIGNOR}"}


def settings(**lagwise: str) -> dict[str, str]:
    """Properties of a broker; those of lagwise have underscores for dots."""
    named = {f"lagwise.{name.replace('_', '.')}": value for name, value in lagwise.items()}
    return {**SMALL, **ASSIGNORS, "lagwise.control.topic": CONTROL, **named}


@contextmanager
def broker_of(version: str, folder: Path, **lagwise: str) -> Iterator[EmbeddedBroker]:
    """A broker of that version that reads plans from itself, unless it is told to read them elsewhere."""
    port = free_port()
    properties = settings(**{"bootstrap_servers": f"{HOST}:{port}", **lagwise})
    with (
        brokers_with_jar(version),
        EmbeddedBroker(data_dir=folder / "broker", port=port, properties=properties) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        create_topics(broker.bootstrap_servers, {"t": PARTITIONS, CONTROL: 1})
        produce(broker.bootstrap_servers, "t", dict.fromkeys(range(PARTITIONS), RECORDS))
        yield broker


@dataclass
class World:
    """A group with its members on one broker."""

    group: BrokerGroup
    cluster: str
    log: Path
    members: Members
    host: JavaHost
    places: list[tuple[str, int]] = field(default_factory=lambda: [("t", n) for n in range(PARTITIONS)])

    def two(self) -> Owned:
        """The group has one member of confluent-kafka and one in Java."""
        self.join_confluent()
        self.members.add(java_member(self.host, self.group.bootstrap, self.group.name, ["t"]))
        return self.group.settled(self.places, members=2)

    def join_confluent(self) -> ThreadedMember:
        return self.members.add(ConfluentMember(self.group.bootstrap, self.group.name, ["t"]))

    def publish(self, base: Owned, target: Owned, epoch: int, **more: object) -> None:
        self.group.publish(self.group.plan(base, target, epoch=epoch, cluster=self.cluster), **more)

    def follow(self, base: Owned, target: Owned, epoch: int) -> None:
        """A plan is published, and followed when the group is poked."""
        self.publish(base, target, epoch)
        self.group.apply(target)

    def poke(self) -> Owned:
        """What the group has after the broker has assigned it again, twice."""
        with self.group.poke():
            pass
        wait_until(self.group.owned, what="the group at rest")
        return self.group.owned()

    def given_up(self) -> list[tuple[str, int]]:
        return [stay.place for one in self.members.all for stay in one.stays]

    def logged(self, words: str) -> int:
        """How often the broker has logged them."""
        return self.log.read_text(encoding="utf-8").count(words)


@contextmanager
def world(broker: EmbeddedBroker, name: str = "g") -> Iterator[World]:
    bootstrap = broker.bootstrap_servers
    with JavaHost(java_jar()) as host, Members() as members:
        yield World(
            group=BrokerGroup(bootstrap=bootstrap, name=name, control=CONTROL),
            cluster=broker.cluster_id,
            log=broker.data_dir / "server.log",
            members=members,
            host=host,
        )


def uneven(base: Owned) -> dict[str, frozenset[tuple[str, int]]]:
    """A target that no even assignor gives: one partition for one, all others for the other; or the reverse."""
    first, last = sorted(base)
    few, many = (first, last) if len(base[first]) > 1 else (last, first)
    kept = min(base[few])
    return {few: frozenset({kept}), many: (base[few] | base[many]) - {kept}}


def moved(base: Owned, target: Owned) -> set[tuple[str, int]]:
    return {place for member, places in base.items() for place in places - target[member]}


def readers_of_plans(broker: EmbeddedBroker) -> int:
    """Threads of the assignor in the broker's process."""
    command = [str(find_tool("jcmd")), str(broker.pid), "Thread.print"]
    threads = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return threads.count('"lagwise-plan-reader"')


def check_failures(broker: EmbeddedBroker, members: Members) -> None:
    log = (broker.data_dir / "server.log").read_text(encoding="utf-8")
    assert "Lagwise's assignor fails" not in log
    assert all(one.failed is None for one in members.gone if isinstance(one, JavaMember))


@pytest.mark.parametrize("version", [OLDEST, OF_THE_DEMO, NEWEST])
def test_plan_is_followed_when_the_group_is_poked(version: str, tmp_path: Path) -> None:
    with broker_of(version, tmp_path) as broker, world(broker) as one:
        base = one.two()
        assert sorted(map(len, base.values())) == [3, 3]
        target = uneven(base)
        before = one.given_up()

        one.follow(base, target, epoch=1)

        assert set(one.given_up()[len(before) :]) == moved(base, target)
        assert len(one.given_up()) - len(before) == len(moved(base, target)) == 2
        assert one.logged("Plan 1 is the assignment of group g") == 1
        assert readers_of_plans(broker) == 1
        # The next one, and a member that has to read on what it had.
        other = uneven(target)
        one.follow(target, other, epoch=2)
        wait_until(
            lambda: len(set().union(*(member.read for member in one.members.all))) == PARTITIONS * RECORDS,
            what="every record",
        )
        check_failures(broker, one.members)
    assert f"Kafka version: {version}" in (tmp_path / "broker/server.log").read_text(encoding="utf-8")


def test_what_does_not_fit_or_is_not_to_be_followed_changes_nothing(tmp_path: Path) -> None:
    with broker_of(NEWEST, tmp_path) as broker, world(broker) as one:
        base = one.two()
        target = uneven(base)
        one.follow(base, target, epoch=1)
        given_up = one.given_up()
        stranger = {**base, "stranger": frozenset({("t", 6)})}

        one.publish(stranger, stranger, epoch=2)
        assert one.poke() == target
        wait_until(lambda: one.logged("Plan 2 does not fit group g") == 1, what="a word about it")
        for epoch, more in enumerate(
            (
                {"dry_run": True},
                {"valid_until": "2026-01-31T12:05:00.000Z"},
                {"group_protocol": "classic"},
                {"schema": 2},
                {"members": "none"},
            ),
            start=3,
        ):
            one.publish(target, base, epoch, **more)
        assert one.poke() == target
        assert one.given_up() == given_up
        assert one.logged("A record of the control topic is ignored") == 2

        # A newcomer is given its share, and nobody else anything.
        newcomer = one.join_confluent()
        after = one.group.settled(one.places, members=3)
        assert len(after[newcomer.now.member_id]) == PARTITIONS // 3
        assert all(after[member] <= target[member] for member in target)
        # What it leaves behind goes to others, who keep what they have.
        one.members.stop(newcomer)
        last = one.group.settled(one.places, members=2)
        assert all(last[member] >= after[member] for member in target)
        check_failures(broker, one.members)


def test_control_topic_that_is_gone_changes_nothing_and_is_read_again(tmp_path: Path) -> None:
    with broker_of(OF_THE_DEMO, tmp_path) as broker, world(broker) as one:
        base = one.two()
        target = uneven(base)
        one.follow(base, target, epoch=1)
        admin = admin_client(broker.bootstrap_servers)
        wait_until(lambda: one.logged(f"Plans are read from control topic {CONTROL}") == 1, what="reading")

        admin.delete_topics([CONTROL])[CONTROL].result()
        wait_until(lambda: one.logged(f"Control topic {CONTROL} cannot be read") == 1, what="a word about it")
        assert one.poke() == target
        newcomer = one.join_confluent()
        one.group.settled(one.places, members=3)
        one.members.stop(newcomer)
        last = one.group.settled(one.places, members=2)
        create_topics(broker.bootstrap_servers, {CONTROL: 1})
        wait_until(lambda: one.logged(f"Plans are read from control topic {CONTROL}") == 2, what="reading")
        one.follow(last, uneven(last), epoch=2)

        assert one.logged(f"Control topic {CONTROL} cannot be read") == 1
        assert readers_of_plans(broker) == 1
        check_failures(broker, one.members)


def test_broker_that_starts_again_reads_the_plans_that_are_there(tmp_path: Path) -> None:
    with broker_of(NEWEST, tmp_path) as broker, world(broker) as one:
        base = one.two()
        target = uneven(base)
        one.follow(base, target, epoch=1)
        broker.restart()
        wait_until(lambda: one.group.owned() == target, what="the same members with the same partitions")
        other = uneven(target)
        one.publish(target, other, epoch=2)
        # No group has been assigned by this process, and the first assignment is to find the plan.
        wait_until(lambda: one.logged(f"Plans are read from control topic {CONTROL}") == 1, what="reading")
        assert one.poke() == other
        assert one.logged("Plan 2 is the assignment of group g") == 1
        check_failures(broker, one.members)


@pytest.mark.parametrize("servers", ["127.0.0.1:1", ""], ids=["nobody there", "not named"])
def test_broker_that_cannot_read_plans_assigns_all_the_same(tmp_path: Path, servers: str) -> None:
    with broker_of(NEWEST, tmp_path, bootstrap_servers=servers) as broker, world(broker) as one:
        base = one.two()
        one.publish(base, uneven(base), epoch=1)
        assert one.poke() == base
        newcomer = one.join_confluent()
        after = one.group.settled(one.places, members=3)

        assert sorted(map(len, after.values())) == [2, 2, 2]
        one.members.stop(newcomer)
        one.group.settled(one.places, members=2)
        words = "cannot be read" if servers else "no property lagwise.bootstrap.servers"
        wait_until(lambda: one.logged(words), what="a word about it")
        assert one.logged(words) == 1
        check_failures(broker, one.members)


def test_format_of_storage_takes_the_class_and_a_broker_without_groups_has_one_reader(tmp_path: Path) -> None:
    properties = settings(bootstrap_servers="127.0.0.1:1")
    with brokers_with_jar(NEWEST):
        broker = EmbeddedBroker(data_dir=tmp_path / "broker", properties=properties)
        # It is formatted by StorageTool with these properties, or its start fails.
        with broker:
            assert readers_of_plans(broker) == 1


def test_reader_comes_by_tls_and_sasl_with_rights_on_two_topics(tmp_path: Path) -> None:
    port = free_port()
    secret = "mark-9c4e of a password"  # noqa: S105 - of a broker that is made for one test
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    secrets = tmp_path / "secrets"
    secrets.write_text(f'login={scram} required username="reader" password="{secret}";\n', encoding="utf-8")
    more: Mapping[str, str] = {
        **settings(bootstrap_servers=f"{HOST}:{port}", security_protocol="SASL_SSL"),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "lagwise.sasl.mechanism": "SCRAM-SHA-512",
        "lagwise.sasl.jaas.config": f"${{file:{secrets}:login}}",
        "lagwise.ssl.truststore.type": "PEM",
        "lagwise.ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    with brokers_with_jar(NEWEST), secured_broker(tmp_path, safe_port=port, more=more) as secured:
        bootstrap = secured.open_servers
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {"t": PARTITIONS, CONTROL: 1})
        secured.add_user("reader")
        cluster = admin_client(bootstrap).list_topics(timeout=10).cluster_id
        log = tmp_path / "broker" / "server.log"
        with JavaHost(java_jar()) as host, Members() as members:
            group = BrokerGroup(bootstrap=bootstrap, name="g", control=CONTROL)
            one = World(group=group, cluster=str(cluster), log=log, members=members, host=host)
            base = one.two()
            wait_until(
                lambda: one.logged("cannot be read (org.apache.kafka.common.errors.TopicAuth"),
                what="a refusal",
            )
            secured.allow("reader", (AclOperation.READ, ResourceType.TOPIC, CONTROL))
            wait_until(lambda: one.logged(f"Plans are read from control topic {CONTROL}"), what="reading")
            one.publish(base, uneven(base), epoch=1)
            assert one.poke() == base
            wait_until(
                lambda: one.logged("there is no topic t, or DESCRIBE on it is missing"), what="a refusal"
            )
            secured.allow("reader", (AclOperation.DESCRIBE, ResourceType.TOPIC, "t"))
            one.follow(base, uneven(base), epoch=2)

        assert secret not in log.read_text(encoding="utf-8")
        assert secret not in (tmp_path / "broker/java.log").read_text(encoding="utf-8")
