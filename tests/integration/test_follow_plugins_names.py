"""Assignors under their names on the wire, on a real broker: beside Java, beside their former names, and by lag."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from assignor.clients import aiokafka as of_aiokafka
from assignor.clients import kafka_python as of_kafka_python
from assignor.clients.kafka_python import COOPERATIVE, EAGER
from assignor.clients.plugin.membership import under_strategy
from assignor.protocol.kafka.offsets import group_id_of, record_type_of
from assignor.protocol.kafka.record_types import RecordType
from pipeline.decode.groups import group_rows
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC, produce
from tests.support.brokers.flow import Flow
from tests.support.brokers.raw_records import raw
from tests.support.followers.group_members import Members, ThreadedMember
from tests.support.followers.plugin_members import AiokafkaMember, KafkaPythonMember
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.followers.stays import overlapping
from tests.support.java.java_consumers import java_consumer
from tests.support.waiting import wait_until

STRATEGY = "constrained-cooperative-sticky"


def group_row(setup: PluginSetup) -> dict[str, object]:
    """The newest record of the test's group, as the job reads it; of no members before the first."""
    reader = Consumer({"bootstrap.servers": setup.bootstrap, "group.id": "reader", "log_level": 0})
    pairs = []
    try:
        for number in range(OFFSETS_PARTITIONS):
            end = reader.get_watermark_offsets(TopicPartition(OFFSETS_TOPIC, number), timeout=10)[1]
            reader.assign([TopicPartition(OFFSETS_TOPIC, number, 0)])
            at = -1
            while at < end - 1 and (message := reader.poll(1)) is not None:
                at = message.offset()
                key = message.key()
                if record_type_of(key) == RecordType.GROUP_METADATA and group_id_of(key) == setup.name:
                    pairs.append((key, message.value()))
    finally:
        reader.close()
    rows: list[dict[str, object]] = group_rows(raw(*pairs), lambda _: True).good
    return rows[0] if rows else {"members": []}


def owners(row: dict[str, object]) -> list[int]:
    """Numbers of partitions of the members, ascending."""
    return sorted(sum(map(len, member["assigned"].values())) for member in row["members"])


def java_members(setup: PluginSetup, stack: ExitStack, *assignors: str, members: int) -> dict[str, object]:
    """The group's record once so many members, one more each time, are all Java's and each has something."""
    row: dict[str, object] = {}

    def complete() -> bool:
        nonlocal row
        row = group_row(setup)
        return len(row["members"]) == have and 0 not in owners(row)

    for have in range(1, members + 1):
        stack.enter_context(
            java_consumer(setup.bootstrap, group=setup.name, topic=setup.name, assignors=assignors)
        )
        wait_until(complete, what=f"{have} members", every_s=0.3)
    return row


def test_java_that_lists_range_beside_cooperative_sticky_is_shown_as_eager(setup: PluginSetup) -> None:
    with ExitStack() as stack:
        row = java_members(setup, stack, "CooperativeStickyAssignor", "RangeAssignor", members=2)

    assert (row["assignor"], row["rebalance_protocol"]) == ("cooperative-sticky", "eager")


def test_java_with_cooperative_sticky_alone_is_shown_as_cooperative(setup: PluginSetup) -> None:
    with ExitStack() as stack:
        row = java_members(setup, stack, "CooperativeStickyAssignor", members=2)

    assert (row["assignor"], row["rebalance_protocol"]) == ("cooperative-sticky", "cooperative")


@pytest.mark.parametrize("ours_leads", [True, False])
def test_sticky_group_keeps_its_partitions_with_java_beside_it(setup: PluginSetup, ours_leads: bool) -> None:
    """KIP-341: each leader reads what the members of the other client claim."""

    def ours() -> ThreadedMember:
        return members.add(KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], strategy="sticky"))

    def java() -> None:
        stack.enter_context(
            java_consumer(setup.bootstrap, group=setup.name, topic=setup.name, assignors=("StickyAssignor",))
        )

    def settled(sizes: list[int]) -> dict[str, frozenset[int]]:
        wait_until(lambda: owners(group_row(setup)) == sizes, what=f"counts {sizes}", every_s=0.3)
        row = group_row(setup)
        return {
            m["member_id"]: frozenset(n for ns in m["assigned"].values() for n in ns) for m in row["members"]
        }

    with ExitStack() as stack, Members() as members:
        for join, sizes in zip([ours, java] if ours_leads else [java, ours], [[6], [3, 3]], strict=True):
            join()
            before = settled(sizes)
        ours()
        after = settled([2, 2, 2])

    assert all(after[name] < before[name] for name in before)


def former(setup: PluginSetup) -> ThreadedMember:
    """A member of a release that knows only the former name."""
    old = of_kafka_python.MemberAssignor(under_strategy(STRATEGY, has_old_name=True), EAGER)
    return KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], beside=[old])


def both(setup: PluginSetup) -> ThreadedMember:
    new = of_kafka_python.StrategyAssignor(STRATEGY)
    return KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], beside=[new, new.under_old_name()])


def latter(setup: PluginSetup) -> ThreadedMember:
    new = of_kafka_python.StrategyAssignor(STRATEGY)
    return KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], beside=[new])


def test_group_goes_over_to_the_new_name_one_member_at_a_time(setup: PluginSetup) -> None:
    selected = []
    with Members() as members:
        for _ in "ab":
            members.add(former(setup))
        members.settled(setup.places)
        for make in (both, latter):
            for old in list(members.all):
                generation = members.generation
                members.stop(old)
                members.add(make(setup))
                owned = members.settled(setup.places, after=generation)
                selected.append({member.assignor for member in members.all})
        assert sorted(map(len, owned.values())) == [3, 3]

    assert selected == [{f"lagwise-{STRATEGY}"}, {STRATEGY}, {STRATEGY}, {STRATEGY}]


def by_kafka_python(setup: PluginSetup) -> ThreadedMember:
    assignor = of_kafka_python.LagAwareAssignor(
        group_id=setup.name, auto_offset_reset="earliest", bootstrap_servers=setup.bootstrap
    )
    return KafkaPythonMember(
        setup.bootstrap, setup.name, [setup.name], beside=[assignor], enable_auto_commit=False
    )


def by_aiokafka(setup: PluginSetup) -> ThreadedMember:
    assignor = of_aiokafka.LagAwareAssignor(
        group_id=setup.name, auto_offset_reset="earliest", bootstrap_servers=setup.bootstrap
    )
    return AiokafkaMember(
        setup.bootstrap, setup.name, [setup.name], beside=[assignor], enable_auto_commit=False
    )


@pytest.mark.parametrize("make", [by_kafka_python, by_aiokafka])
def test_lag_aware_leader_asks_its_brokers_for_lag(
    setup: PluginSetup, make: Callable[[PluginSetup], ThreadedMember]
) -> None:
    # As nobody commits, each rebalance sees the same lag: 120 records, and five times 20.
    produce(setup.bootstrap, setup.name, {0: 100})
    generation = -1

    with Members() as members:
        for _ in "ab":
            members.add(make(setup))
            owned = members.settled(setup.places, after=generation)
            generation = members.generation

    heavy = next(places for places in owned.values() if (setup.name, 0) in places)
    assert sorted(map(len, owned.values())) == [3, 3]
    # In each round the other, who has less, comes first.
    assert {number for _, number in heavy} == {0, 3, 5}


def test_cooperative_group_comes_over_by_one_bounce_and_goes_back_by_one(setup: PluginSetup) -> None:
    plain = [CooperativeStickyAssignor]
    topics = {"control_topic": setup.control, "acks_topic": setup.acks}
    by_name = setup.bootstrap, setup.name, [setup.name]
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()

    def bounced(make: Callable[[], ThreadedMember]) -> list[set[str | None]]:
        selected = []
        for old in list(members.all):
            generation = members.generation
            members.stop(old)
            members.add(make())
            members.settled(setup.places, after=generation)
            selected.append({member.assignor for member in members.all})
        return selected

    with Members() as members:
        for _ in "ab":
            members.add(KafkaPythonMember(*by_name, beside=plain))
        members.settled(setup.places)
        over = bounced(lambda: KafkaPythonMember(*by_name, **topics, protocol=COOPERATIVE, by_default=True))
        target = all_to_one(members.owned())
        setup.publish(setup.plan(members.owned(), target, generation=members.generation))
        wait_until(lambda: members.owned() == target, what="the target")
        back = bounced(lambda: KafkaPythonMember(*by_name, beside=plain))
        flow.end()
        everything = PARTITIONS * (RECORDS + flow.produced)
        wait_until(
            lambda: len(set().union(*(m.read for m in [*members.gone, *members.all]))) == everything,
            what="every record",
        )

    assert over == [{"cooperative-sticky"}, {"lagwise"}]
    assert back == [{"cooperative-sticky"}] * 2
    assert overlapping(stay for member in members.gone for stay in member.stays) == []
