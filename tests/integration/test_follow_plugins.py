"""Groups of kafka-python and aiokafka on a real broker, under the assignors of this package."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from assignor.clients.kafka_python import COOPERATIVE
from assignor.protocol.acks import Applied, Refused
from tests.support.brokers.broker import create_topics
from tests.support.followers.group_members import Members, PartitionKey, ThreadedMember
from tests.support.followers.plugin_members import KafkaPythonMember
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.waiting import wait_until


def kafka_python_eager(setup: PluginSetup) -> ThreadedMember:
    return setup.follower()


def kafka_python_cooperative(setup: PluginSetup) -> ThreadedMember:
    return setup.follower(protocol=COOPERATIVE)


def aiokafka_eager(setup: PluginSetup) -> ThreadedMember:
    return setup.aiokafka_follower()


Make = Callable[[PluginSetup], ThreadedMember]


def three(members: Members, setup: PluginSetup, make: Make) -> dict[str, frozenset[PartitionKey]]:
    """Three settled members, and what each owns."""
    for _ in range(3):
        members.add(make(setup))
    return members.settled(setup.places)


@pytest.mark.parametrize(
    ("make", "rebalances"), [(kafka_python_eager, 1), (kafka_python_cooperative, 2), (aiokafka_eager, 1)]
)
def test_published_plan_is_applied_by_all(setup: PluginSetup, make: Make, rebalances: int) -> None:
    with Members() as members:
        base = three(members, setup, make)
        generation = members.generation
        target = all_to_one(base)

        setup.publish(setup.plan(base, target, generation=generation))
        wait_until(lambda: members.owned() == target, what="the target")

        assert members.generation >= generation + rebalances
        wait_until(
            lambda: len(set().union(*(m.read for m in members.all))) == PARTITIONS * RECORDS,
            what="all records",
        )
        wait_until(lambda: {ack.member for ack in setup.said(Applied)} == set(base), what="three applied")

        settled = {(ack.epoch, ack.generation) for ack in setup.said(Applied)}
        assert settled <= {(1, later) for later in range(generation + 1, members.generation + 1)}
        assert setup.said(Refused) == []


def test_cooperative_move_takes_two_steps(setup: PluginSetup) -> None:
    with Members() as members:
        base = three(members, setup, kafka_python_cooperative)
        generation = members.generation
        target = all_to_one(base)
        moved = base[max(base)]

        setup.publish(setup.plan(base, target, generation=generation))
        wait_until(lambda: members.owned() == target, what="the target")

        views = [view for member in members.all for view in member.views if view.generation == generation + 1]
        assert views
        assert not any(view.owned & moved for view in views)
        kept = {view.member_id: view.owned for view in views}
        assert all(base[member] - moved <= kept[member] for member in kept)


def test_plan_of_other_members_leaves_everything_where_it_is(setup: PluginSetup) -> None:
    with Members() as members:
        base = three(members, setup, kafka_python_eager)
        generation = members.generation
        strange = {f"not-{member}": places for member, places in base.items()}

        setup.publish(setup.plan(strange, all_to_one(strange), generation=generation))
        members.settled(setup.places, after=generation)
        after = members.owned()
        wait_until(lambda: {ack.member for ack in setup.said(Refused)} == set(base), what="three refusals")
        # Nobody asks for more rebalances; the client makes some of its own where the machine is slow.
        setup.publish(setup.plan(base, all_to_one(base), generation=members.generation, epoch=2))
        wait_until(lambda: members.owned() == all_to_one(base), what="the second plan")

        assert after == base
        refusals = [(ack.epoch, ack.generation) for ack in setup.said(Refused)]
        assert len(refusals) == 3
        assert len(set(refusals)) == 1, "one leader refused once"
        assert refusals[0][0] == 1
        assert generation < refusals[0][1] < members.generation
        assert all("for other members, 6 differ" in ack.why for ack in setup.said(Refused))


def test_member_that_joins_voids_the_plan(setup: PluginSetup) -> None:
    with Members() as members:
        base = three(members, setup, kafka_python_eager)
        setup.publish(setup.plan(base, all_to_one(base), generation=members.generation))
        wait_until(lambda: members.owned() == all_to_one(base), what="the target")

        members.add(setup.follower())
        owned = members.settled(setup.places, after=members.generation)

        assert Counter(map(len, owned.values())) == {2: 2, 1: 2}


def test_expired_plan_is_not_applied(setup: PluginSetup) -> None:
    with Members() as members:
        base = three(members, setup, kafka_python_eager)
        expired = setup.plan(base, all_to_one(base), generation=members.generation)
        other = {**base, min(base): base[max(base)], max(base): base[min(base)]}

        setup.publish(replace(expired, valid_until_ms=1))
        setup.publish(setup.plan(base, other, generation=members.generation, epoch=2))
        wait_until(lambda: members.owned() == other, what="the second plan")

        assert not any(view.owned == all_to_one(base)[min(base)] for m in members.all for view in m.views)


def test_stream_join_keeps_numbers_together_without_a_control_topic(setup: PluginSetup) -> None:
    create_topics(setup.bootstrap, {f"{setup.name}-2": PARTITIONS})
    topics = [setup.name, f"{setup.name}-2"]
    places = [(topic, number) for topic in topics for number in range(PARTITIONS)]

    def member() -> ThreadedMember:
        return KafkaPythonMember(
            setup.bootstrap, setup.name, topics, strategy="sticky-stream-join", protocol=COOPERATIVE
        )

    with Members() as members:
        members.add(member())
        members.add(member())
        first = members.settled(places)
        members.add(member())
        second = members.settled(places, after=members.generation)

    for owned in (*first.values(), *second.values()):
        assert {n for t, n in owned if t == topics[0]} == {n for t, n in owned if t == topics[1]}
    assert all(second[name] <= first[name] for name in first)
    assert Counter(map(len, second.values())) == {4: 3}


def test_consumer_that_polls_briefly_is_freed_from_its_join(setup: PluginSetup) -> None:
    """The leader joins again because of new metadata, and its poll ends while that join is under way."""
    with Members() as members:
        member = members.add(
            KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], strategy="sticky", poll_ms=5)
        )

        wait_until(lambda: len(member.read) == PARTITIONS * RECORDS, what="all records", within_s=20)
