"""A member of KIP-848 joins a group of followers in the middle of a plan, on brokers that migrate groups and that do not."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupType

from assignor.protocol.acks import Applied, Follows, Refused
from assignor.protocol.migration import why_not
from pipeline.kafka.migration import MigrationWatch
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_offsets_topic, small_broker
from tests.support.brokers.commits import set_back
from tests.support.followers.follow_processes import Base, Processes
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_setup import PluginSetup, all_to_one
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

NEW = {"group.protocol": "consumer", "session.timeout.ms": None, "heartbeat.interval.ms": None}
"""Of the member that joins; the broker sets both times."""
AS_KAFKA_SHIPS_IT = "bidirectional"


@pytest.fixture(scope="module")
def migrating() -> Iterator[EmbeddedBroker]:
    with small_broker(group_consumer_migration_policy=AS_KAFKA_SHIPS_IT) as running:
        create_offsets_topic(running.bootstrap_servers)
        yield running


@contextmanager
def two_processes(broker: EmbeddedBroker, name: str, folder: Path, **options: object) -> Iterator[Processes]:
    """Members a and b; b is busy while their file "busy" is there. Plans say what the broker's policy is."""
    with Processes(broker.bootstrap_servers, name, folder) as processes:
        processes.migration = MigrationWatch(admin_client(broker.bootstrap_servers))()
        processes.start("a", **options)
        processes.start("b", busy=str(folder / "busy"), **options)
        yield processes


def all_to_b(processes: Processes) -> tuple[Base, int]:
    """A plan that gives everything to b, and its epoch."""
    generation, ids, base = processes.base(2)
    return (generation, ids, base), processes.publish(generation, base, all_with(ids["b"], base))


def all_with(member: str, base: dict[str, list[int]]) -> dict[str, list[int]]:
    everything = sorted(partition for places in base.values() for partition in places)
    return {**{name: [] for name in base}, member: everything}


def keep_b_busy(processes: Processes, folder: Path) -> Path:
    """B is in the middle of a record, and does not poll until the file is removed."""
    busy = folder / "busy"
    busy.touch()
    wait_until(lambda: processes.count("busy", who="b"), what="b in the middle of a record")
    return busy


def group_type(processes: Processes) -> ConsumerGroupType:
    admin = admin_client(processes.bootstrap)
    return admin.describe_consumer_groups([processes.group])[processes.group].result(10).type


def test_member_of_kip848_is_turned_away_and_following_goes_on_where_migration_is_disabled(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with two_processes(broker, "turned-away", tmp_path) as processes:
        (generation, ids, base), epoch = all_to_b(processes)
        processes.wait_for_acks(Applied, epoch, 2)
        busy = keep_b_busy(processes, tmp_path)
        processes.start("j", new="yes", config=NEW)
        wait_until(lambda: processes.count("turned away", who="j"), what="the broker's no to the newcomer")
        busy.unlink()

        epoch = processes.publish(generation, all_with(ids["b"], base), base)
        processes.wait_for_acks(Applied, epoch, 2)
        kind = group_type(processes)
        processes.finish()

        assert (processes.migration, kind) == ("disabled", ConsumerGroupType.CLASSIC)
        assert processes.count("gained", who="j") == 0
        assert {ack.generation for ack in processes.all_acks()} == {generation}
        assert_nothing_went_wrong(processes)


def test_followers_refuse_and_a_member_of_kip848_gets_its_share_where_groups_are_migrated(
    migrating: EmbeddedBroker, tmp_path: Path
) -> None:
    with two_processes(migrating, "migrated", tmp_path) as processes:
        _, epoch = all_to_b(processes)
        processes.wait_for_acks(Refused, epoch, 2)
        busy = keep_b_busy(processes, tmp_path)
        processes.start("j", new="yes", config=NEW)
        wait_until(lambda: processes.count("gained", who="a") > 1, what="a assigned again")
        busy.unlink()
        wait_until(lambda: processes.count("gained", who="j"), what="a share for the newcomer")
        kind = group_type(processes)
        processes.finish()

        said = processes.all_acks()
        assert (processes.migration, kind) == ("possible", ConsumerGroupType.CONSUMER)
        assert not any(isinstance(ack, Follows) for ack in said)
        assert {ack.why for ack in said if isinstance(ack, Refused)} == {why_not("possible")}
        assert_nothing_went_wrong(processes)


def test_judge_sees_two_owners_and_a_commit_set_back_when_members_follow_despite_migration(
    migrating: EmbeddedBroker, tmp_path: Path
) -> None:
    with two_processes(migrating, "despite", tmp_path, follower={"despite_migration": True}) as processes:
        _, epoch = all_to_b(processes)
        processes.wait_for_acks(Applied, epoch, 2)
        busy = keep_b_busy(processes, tmp_path)
        processes.start("j", new="yes", config=NEW)
        wait_until(lambda: processes.count("gained", who="j"), what="partitions of b's for the newcomer")
        wait_until(processes.overlaps, what="a second owner")
        wait_until(lambda: processes.count("record", who="j") > 100, what="commits of the newcomer")
        busy.unlink()
        wait_until(lambda: set_back(processes.bootstrap, processes.group), what="a commit that goes back")
        log.info(
            "%s second owners, set back: %s",
            len(processes.overlaps()),
            set_back(processes.bootstrap, processes.group),
        )


@pytest.mark.parametrize("kind", ["kafka-python", "aiokafka"])
def test_group_under_lagwise_turns_a_member_of_kip848_away_though_groups_are_migrated(
    migrating: EmbeddedBroker, kind: str
) -> None:
    setup = PluginSetup.made(migrating.bootstrap_servers, f"turned-away-by-{kind}")
    with Members() as members, closing(_newcomer(setup)) as newcomer:
        for _ in range(2):
            members.add(setup.follower() if kind == "kafka-python" else setup.aiokafka_follower())
        base = members.settled(setup.places)
        problems: list[str] = []

        def is_turned_away() -> bool:
            message = newcomer.poll(0.5)
            if message is not None and message.error() is not None:
                problems.append(message.error().str())
            return bool(problems)

        newcomer.subscribe([setup.name])
        wait_until(is_turned_away, what="the broker's no to the newcomer")
        log.info("turned away: %s", problems)

        setup.publish(setup.plan(base, all_to_one(base), generation=members.generation, epoch=1))
        wait_until(lambda: len(setup.said(Applied)) == 2, what="the plan applied")
        admin = admin_client(migrating.bootstrap_servers)
        kind_of_group = admin.describe_consumer_groups([setup.name])[setup.name].result(10).type
        assert (kind_of_group, newcomer.assignment()) == (ConsumerGroupType.CLASSIC, [])


def _newcomer(setup: PluginSetup) -> Consumer:
    group = {"group.id": setup.name, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    return Consumer({"bootstrap.servers": setup.bootstrap, "log_level": 0, **group})


def assert_nothing_went_wrong(processes: Processes) -> None:
    assert processes.missing() == []
    assert processes.overlaps() == []
    assert set_back(processes.bootstrap, processes.group) == []
