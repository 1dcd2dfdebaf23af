"""Groups of plain eager members, taken to following and back one member at a time, under traffic.

While one plain member is left, a plan that involves it is not applied: with confluent-kafka nothing is given before
all have accepted it, and with kafka-python the plain member's assignor is the one that all list (KIP-726).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignor.clients.kafka_python import COOPERATIVE
from assignor.protocol.acks import Applied, Follows, Release
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.flow import Flow
from tests.support.followers.follow_processes import Base, Processes
from tests.support.followers.group_members import Members, PartitionKey, ThreadedMember
from tests.support.followers.plugin_members import AiokafkaMember, KafkaPythonMember
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.followers.stays import overlapping
from tests.support.waiting import wait_until


def rotated(base: dict[str, list[int]]) -> dict[str, list[int]]:
    """Every partition goes to the next member."""
    names = sorted(base)
    return {name: base[names[number - 1]] for number, name in enumerate(names)}


def replaced(processes: Processes, now: Base, old: str, new: str, **options: str) -> Base:
    """The group after one process has left and another has come."""
    processes.leave(old)
    processes.start(new, **options)
    return processes.base(3, after=now[0])


def test_confluent_group_comes_over_and_goes_back_one_member_at_a_time(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "bounce", tmp_path) as processes:
        for letter in "abc":
            processes.start(f"{letter}-old", plain="yes")
        now = processes.base(3)
        followers: set[str] = set()
        mixed = []

        def try_a_plan() -> int:
            generation, ids, base = now
            epoch = processes.publish(generation, base, rotated(base))
            processes.wait_for_acks(Follows, epoch, len(set(ids) & followers))
            if len(followers) < len(ids):
                mixed.append(epoch)
            return epoch

        for letter in "abc":
            now = replaced(processes, now, f"{letter}-old", f"{letter}-new")
            followers.add(f"{letter}-new")
            epoch = try_a_plan()
        processes.wait_for_acks(Applied, epoch, 3)
        members = dict(now[1])
        for letter in "abc":
            now = replaced(processes, now, f"{letter}-new", f"{letter}-old", plain="yes")
            followers.remove(f"{letter}-new")
            try_a_plan()
        processes.finish()

        said = processes.all_acks()
        assert len(mixed) == 5
        assert not [ack for ack in said if isinstance(ack, Applied) and ack.epoch in mixed]
        assert set(members.values()) <= {ack.member for ack in said}
        assert not [ack for ack in said if isinstance(ack, Release) and ack.epoch in mixed]
        assert processes.missing() == []
        assert processes.overlaps() == []


def kafka_python(setup: PluginSetup, *assignors: Any, **more: Any) -> Callable[[], KafkaPythonMember]:
    return lambda: KafkaPythonMember(
        setup.bootstrap, setup.name, [setup.name], beside=list(assignors), poll_ms=50, **more
    )


def bounced(
    members: Members, setup: PluginSetup, make: Callable[[], ThreadedMember]
) -> tuple[list[set[str | None]], dict[str, frozenset[PartitionKey]]]:
    """Each member replaced, one at a time: what was selected after each, and what each owns in the end."""
    selected, owned = [], {}
    for old in list(members.all):
        generation = members.generation
        members.stop(old)
        members.add(make())
        owned = members.settled(setup.places, after=generation)
        selected.append({member.assignor for member in members.all})
    return selected, owned


def apply(
    setup: PluginSetup, members: Members, base: dict[str, frozenset[PartitionKey]], *, epoch: int
) -> None:
    """A plan that no even strategy gives, published and applied."""
    target = all_to_one(base)
    setup.publish(setup.plan(base, target, generation=members.generation, epoch=epoch))
    wait_until(lambda: members.owned() == target, what=f"the target of plan {epoch}")
    wait_until(
        lambda: len({ack.member for ack in setup.said(Applied) if ack.epoch == epoch}) == len(base),
        what=f"plan {epoch} applied by all",
    )


def aiokafka(setup: PluginSetup, *assignors: Any, **more: Any) -> Callable[[], AiokafkaMember]:
    return lambda: AiokafkaMember(setup.bootstrap, setup.name, [setup.name], beside=list(assignors), **more)


def every_record(flow: Flow, members: Members) -> bool:
    numbers = range(flow.produced + RECORDS)
    read = set().union(*(member.read for member in [*members.gone, *members.all]))
    return len(read) == PARTITIONS * len(numbers)


def test_aiokafka_group_comes_over_and_goes_back_one_member_at_a_time(setup: PluginSetup) -> None:
    topics = {"control_topic": setup.control, "acks_topic": setup.acks}
    plain = aiokafka(setup, AiokafkaRange)
    both, alone = aiokafka(setup, AiokafkaRange, **topics), aiokafka(setup, **topics)
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        for _ in "abc":
            members.add(plain())
        members.settled(setup.places)

        up, base = bounced(members, setup, both)
        apply(setup, members, base, epoch=1)
        over, base = bounced(members, setup, alone)
        apply(setup, members, base, epoch=2)
        down, _ = bounced(members, setup, both)
        out, _ = bounced(members, setup, plain)
        flow.end()
        wait_until(lambda: every_record(flow, members), what="every record")

    assert (up, out) == ([{"range"}, {"range"}, {"lagwise"}], [{"range"}] * 3)
    assert over == down == [{"lagwise"}] * 3
    assert {ack.epoch for ack in setup.said(Applied)} == {1, 2}
    assert overlapping(stay for member in members.gone for stay in member.stays) == []


def test_kafka_python_group_comes_over_to_cooperative_and_goes_back_one_member_at_a_time(
    setup: PluginSetup,
) -> None:
    topics = {"control_topic": setup.control, "acks_topic": setup.acks}
    plain = kafka_python(setup, RangePartitionAssignor)
    eager = kafka_python(setup, RangePartitionAssignor, **topics)
    cooperative = kafka_python(setup, protocol=COOPERATIVE, **topics)
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        for _ in "ab":
            members.add(plain())
        members.settled(setup.places)
        up, owned = bounced(members, setup, eager)
        apply(setup, members, owned, epoch=1)
        over, owned = bounced(members, setup, cooperative)
        apply(setup, members, owned, epoch=2)
        down, owned = bounced(members, setup, eager)
        apply(setup, members, owned, epoch=3)
        out, _ = bounced(members, setup, plain)
        flow.end()
        wait_until(lambda: every_record(flow, members), what="every record")

    assert (up, out) == ([{"range"}, {"lagwise"}], [{"range"}, {"range"}])
    assert over == down == [{"lagwise"}, {"lagwise"}]
    assert {ack.epoch for ack in setup.said(Applied)} == {1, 2, 3}
    assert overlapping(stay for member in members.gone for stay in member.stays) == []
