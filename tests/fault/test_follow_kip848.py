"""A member of KIP-848 joins a group of followers in the middle of a plan, on brokers that migrate groups and that do not."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupType

from assignor.protocol.acks import Accepted, Applied, Refused
from assignor.protocol.migration import why_not
from pipeline.kafka.migration import MigrationWatch
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.broker import admin_client, create_offsets_topic, small_broker
from tests.support.commits import set_back
from tests.support.follow_crew import Base, Crew
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
def crew_of_two(broker: EmbeddedBroker, name: str, folder: Path, **options: object) -> Iterator[Crew]:
    """Members a and b; b is busy while the crew's file "busy" is there. Plans say what the broker's policy is."""
    with Crew(broker.bootstrap_servers, name, folder) as crew:
        crew.migration = MigrationWatch(admin_client(broker.bootstrap_servers))()
        crew.start("a", **options)
        crew.start("b", busy=str(folder / "busy"), **options)
        yield crew


def all_to_b(crew: Crew) -> tuple[Base, int]:
    """A plan that gives everything to b, and its epoch."""
    generation, ids, base = crew.base(2)
    return (generation, ids, base), crew.publish(generation, base, all_with(ids["b"], base))


def all_with(member: str, base: dict[str, list[int]]) -> dict[str, list[int]]:
    everything = sorted(partition for places in base.values() for partition in places)
    return {**{name: [] for name in base}, member: everything}


def keep_b_busy(crew: Crew, folder: Path) -> Path:
    """B is in the middle of a record, and does not poll until the file is removed."""
    busy = folder / "busy"
    busy.touch()
    wait_until(lambda: crew.count("busy", who="b"), what="b in the middle of a record")
    return busy


def group_type(crew: Crew) -> ConsumerGroupType:
    admin = admin_client(crew.bootstrap)
    return admin.describe_consumer_groups([crew.group])[crew.group].result(10).type


def test_member_of_kip848_is_turned_away_and_following_goes_on_where_migration_is_disabled(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with crew_of_two(broker, "turned-away", tmp_path) as crew:
        (generation, ids, base), epoch = all_to_b(crew)
        crew.wait_for_acks(Applied, epoch, 2)
        busy = keep_b_busy(crew, tmp_path)
        crew.start("j", new="yes", config=NEW)
        wait_until(lambda: crew.count("turned away", who="j"), what="the broker's no to the newcomer")
        busy.unlink()

        epoch = crew.publish(generation, all_with(ids["b"], base), base)
        crew.wait_for_acks(Applied, epoch, 2)
        kind = group_type(crew)
        crew.finish()

        assert (crew.migration, kind) == ("disabled", ConsumerGroupType.CLASSIC)
        assert crew.count("gained", who="j") == 0
        assert {ack.generation for ack in crew.all_acks()} == {generation}
        assert_nothing_went_wrong(crew)


def test_followers_refuse_and_a_member_of_kip848_gets_its_share_where_groups_are_migrated(
    migrating: EmbeddedBroker, tmp_path: Path
) -> None:
    with crew_of_two(migrating, "migrated", tmp_path) as crew:
        _, epoch = all_to_b(crew)
        crew.wait_for_acks(Refused, epoch, 2)
        busy = keep_b_busy(crew, tmp_path)
        crew.start("j", new="yes", config=NEW)
        wait_until(lambda: crew.count("gained", who="a") > 1, what="a assigned again")
        busy.unlink()
        wait_until(lambda: crew.count("gained", who="j"), what="a share for the newcomer")
        kind = group_type(crew)
        crew.finish()

        said = crew.all_acks()
        assert (crew.migration, kind) == ("possible", ConsumerGroupType.CONSUMER)
        assert not any(isinstance(ack, Accepted) for ack in said)
        assert {ack.why for ack in said if isinstance(ack, Refused)} == {why_not("possible")}
        assert_nothing_went_wrong(crew)


def test_judge_sees_two_owners_and_a_commit_set_back_when_members_follow_despite_migration(
    migrating: EmbeddedBroker, tmp_path: Path
) -> None:
    with crew_of_two(migrating, "despite", tmp_path, follower={"despite_migration": True}) as crew:
        _, epoch = all_to_b(crew)
        crew.wait_for_acks(Applied, epoch, 2)
        busy = keep_b_busy(crew, tmp_path)
        crew.start("j", new="yes", config=NEW)
        wait_until(lambda: crew.count("gained", who="j"), what="partitions of b's for the newcomer")
        wait_until(crew.overlaps, what="a second owner")
        wait_until(lambda: crew.count("record", who="j") > 100, what="commits of the newcomer")
        busy.unlink()
        wait_until(lambda: set_back(crew.bootstrap, crew.group), what="a commit that goes back")
        log.info("%s second owners, set back: %s", len(crew.overlaps()), set_back(crew.bootstrap, crew.group))


def assert_nothing_went_wrong(crew: Crew) -> None:
    assert crew.missing() == []
    assert crew.overlaps() == []
    assert set_back(crew.bootstrap, crew.group) == []
