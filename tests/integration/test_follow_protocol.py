"""KIP-726 with kafka-python on a real broker: one rolling bounce changes the rebalance protocol, and a loss is told."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

from assignor.clients.kafka_python import COOPERATIVE, default_assignors
from tests.support.brokers.flow import Flow
from tests.support.followers.group_members import Members, PartitionKey
from tests.support.followers.plugin_members import KafkaPythonMember
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.followers.stays import overlapping
from tests.support.waiting import wait_until

LATE = "committed for a lost partition"


def member(setup: PluginSetup, assignors: list[Any], **more: Any) -> KafkaPythonMember:
    return KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], beside=assignors, poll_ms=50, **more)


def bounced(
    setup: PluginSetup,
    members: Members,
    group: list[KafkaPythonMember],
    make: Callable[[], KafkaPythonMember],
) -> list[set[str | None]]:
    """Each member replaced, one at a time; what was selected after each."""
    selected = []
    for place, old in enumerate(group):
        generation = members.generation
        members.stop(old)
        group[place] = make()
        members.add(group[place])
        members.settled(setup.places, after=generation)
        selected.append({one.assignor for one in group})
    return selected


def started(
    setup: PluginSetup, members: Members, make: Callable[[], KafkaPythonMember]
) -> list[KafkaPythonMember]:
    group = [make() for _ in "ab"]
    for one in group:
        members.add(one)
    members.settled(setup.places)
    return group


def everything_read(flow: Flow, members: Members) -> bool:
    read = set().union(*(one.read for one in [*members.gone, *members.all]))
    return len(read) == PARTITIONS * (flow.produced + RECORDS)


def old_list() -> list[Any]:
    return [RangePartitionAssignor]


def test_one_rolling_bounce_takes_a_group_to_cooperative_and_one_takes_it_back(setup: PluginSetup) -> None:
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        group = started(setup, members, lambda: member(setup, old_list()))
        up = bounced(setup, members, group, lambda: member(setup, default_assignors()))
        are_cooperative = [one.is_cooperative for one in group]
        before, ended = [one.now.owned for one in group], [len(one.stays) for one in group]
        generation = members.generation
        joined = members.add(member(setup, default_assignors()))
        members.settled(setup.places, after=generation)
        interrupted = [
            {stay.place for stay in one.stays[n:]} & one.now.owned
            for one, n in zip(group, ended, strict=True)
        ]
        moved = joined.now.owned
        generation = members.generation
        members.stop(joined)
        members.settled(setup.places, after=generation)
        down = bounced(setup, members, group, lambda: member(setup, old_list()))
        flow.end()
        wait_until(lambda: everything_read(flow, members), what="every record")

    assert (up, down) == ([{"range"}, {"cooperative-sticky"}], [{"range"}, {"range"}])
    assert are_cooperative == [True, True]
    assert moved
    assert moved < frozenset().union(*before)
    assert interrupted == [set(), set()]
    assert overlapping(stay for one in members.gone for stay in one.stays) == []


def test_one_rolling_bounce_takes_a_group_to_plans_applied_cooperatively_and_one_takes_it_back(
    setup: PluginSetup,
) -> None:
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        group = started(setup, members, lambda: member(setup, old_list()))
        up = bounced(
            setup,
            members,
            group,
            lambda: setup.follower(protocol=COOPERATIVE, by_default=True, poll_ms=50),
        )
        base = members.owned()
        target = all_to_one(base)
        setup.publish(setup.plan(base, target, generation=members.generation, epoch=1))
        wait_until(lambda: members.owned() == target, what="the target of the plan")
        are_cooperative = [one.is_cooperative for one in group]
        down = bounced(setup, members, group, lambda: member(setup, old_list()))
        flow.end()
        wait_until(lambda: everything_read(flow, members), what="every record")

    assert (up, down) == ([{"range"}, {"lagwise"}], [{"range"}, {"range"}])
    assert are_cooperative == [True, True]
    assert overlapping(stay for one in members.gone for stay in one.stays) == []


def test_member_that_kept_its_partitions_under_an_eager_assignor_loses_them_and_commits_nothing_of_them(
    setup: PluginSetup,
) -> None:
    answers: list[object] = []

    def commit_all_the_same(consumer: KafkaConsumer, lost: frozenset[PartitionKey]) -> None:
        late = {place: OffsetAndMetadata(1, LATE, -1) for place in lost}
        consumer.commit_async(late, callback=lambda _, answer: answers.append(answer))

    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        cooperative = started(
            setup, members, lambda: member(setup, default_assignors(), on_lost=commit_all_the_same)
        )
        kept = [one.now.owned for one in cooperative]
        generation = members.generation
        eager = member(setup, old_list())
        members.add(eager)
        members.settled(setup.places, after=generation)
        selected = {one.assignor for one in [*cooperative, eager]}
        wait_until(lambda: len(answers) == len(cooperative), what="an answer to every commit")
        flow.end()
        wait_until(lambda: everything_read(flow, members), what="every record")

    assert selected == {"range"}
    assert [one.lost for one in cooperative] == [[owned] for owned in kept]
    assert all(isinstance(answer, Exception) for answer in answers)
    assert LATE not in committed_with(setup)
    assert overlapping(stay for one in members.gone for stay in one.stays) == []


def committed_with(setup: PluginSetup) -> set[str | None]:
    """The metadata of the group's commits."""
    reader = Consumer({"bootstrap.servers": setup.bootstrap, "group.id": setup.name, "log_level": 0})
    try:
        places = [TopicPartition(setup.name, number) for number in range(PARTITIONS)]
        return {place.metadata for place in reader.committed(places, timeout=30)}
    finally:
        reader.close()
