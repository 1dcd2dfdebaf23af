"""Groups of kafka-python and aiokafka on a real broker, under the assignors of this package."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignor.clients.kafka_python import COOPERATIVE
from assignor.protocol.control import ControlRecord
from pipeline.embedded import EmbeddedBroker
from tests.support.broker import create_topics, produce
from tests.support.plans import plan
from tests.support.plugin_members import (
    AiokafkaMember,
    KafkaPythonMember,
    Members,
    Place,
    PluginMember,
    publish,
)
from tests.support.waiting import wait_until

PARTITIONS = 6
RECORDS = 20


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Topics of one test, named for it."""

    bootstrap: str
    name: str

    @property
    def control(self) -> str:
        return f"{self.name}-control"

    @property
    def places(self) -> list[Place]:
        return [(self.name, number) for number in range(PARTITIONS)]

    def follower(self, **more: Any) -> KafkaPythonMember:
        return KafkaPythonMember(self.bootstrap, self.name, [self.name], control_topic=self.control, **more)

    def plan(
        self, base: Mapping[str, frozenset[Place]], target: Mapping[str, frozenset[Place]], **more: Any
    ) -> ControlRecord:
        return plan(_by_topic(base), _by_topic(target), group=self.name, **more)

    def publish(self, record: ControlRecord) -> None:
        publish(self.bootstrap, self.control, record)


@pytest.fixture
def stage(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Stage:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    made = Stage(bootstrap=broker.bootstrap_servers, name=name)
    create_topics(made.bootstrap, {made.name: PARTITIONS, made.control: 1})
    produce(made.bootstrap, made.name, dict.fromkeys(range(PARTITIONS), RECORDS))
    return made


def _by_topic(owned: Mapping[str, frozenset[Place]]) -> dict[str, dict[str, tuple[int, ...]]]:
    return {
        member: {t: tuple(sorted(n for topic, n in places if topic == t)) for t in {t for t, _ in places}}
        for member, places in owned.items()
    }


def all_to_one(base: Mapping[str, frozenset[Place]]) -> dict[str, frozenset[Place]]:
    """A target that no even strategy gives: the last member has nothing, the first has its share too."""
    first, *_, last = sorted(base)
    return {**base, first: base[first] | base[last], last: frozenset()}


def kafka_python_eager(stage: Stage) -> PluginMember:
    return stage.follower()


def kafka_python_cooperative(stage: Stage) -> PluginMember:
    return stage.follower(protocol=COOPERATIVE)


def aiokafka_eager(stage: Stage) -> PluginMember:
    return AiokafkaMember(stage.bootstrap, stage.name, [stage.name], control_topic=stage.control)


Make = Callable[[Stage], PluginMember]


def three(members: Members, stage: Stage, make: Make) -> dict[str, frozenset[Place]]:
    """Three settled members, and what each owns."""
    for _ in range(3):
        members.add(make(stage))
    return members.settled(stage.places)


@pytest.mark.parametrize(
    ("make", "rebalances"), [(kafka_python_eager, 1), (kafka_python_cooperative, 2), (aiokafka_eager, 1)]
)
def test_published_plan_is_applied_by_all(stage: Stage, make: Make, rebalances: int) -> None:
    with Members() as members:
        base = three(members, stage, make)
        generation = members.generation
        target = all_to_one(base)

        stage.publish(stage.plan(base, target, generation=generation))
        wait_until(lambda: members.owned() == target, what="the target")

        assert members.generation >= generation + rebalances
        wait_until(
            lambda: len(set().union(*(m.read for m in members.all))) == PARTITIONS * RECORDS,
            what="all records",
        )


def test_cooperative_move_takes_two_steps(stage: Stage) -> None:
    with Members() as members:
        base = three(members, stage, kafka_python_cooperative)
        generation = members.generation
        target = all_to_one(base)
        moved = base[max(base)]

        stage.publish(stage.plan(base, target, generation=generation))
        wait_until(lambda: members.owned() == target, what="the target")

        views = [view for member in members.all for view in member.views if view.generation == generation + 1]
        assert views
        assert not any(view.owned & moved for view in views)
        kept = {view.member_id: view.owned for view in views}
        assert all(base[member] - moved <= kept[member] for member in kept)


def test_plan_of_other_members_leaves_everything_where_it_is(stage: Stage) -> None:
    with Members() as members:
        base = three(members, stage, kafka_python_eager)
        generation = members.generation
        strange = {f"not-{member}": places for member, places in base.items()}

        stage.publish(stage.plan(strange, all_to_one(strange), generation=generation))
        members.settled(stage.places, after=generation)
        after = members.owned()
        # One rebalance, in which the leader refused; another plan, which fits, shows that it was the only one.
        stage.publish(stage.plan(base, all_to_one(base), generation=generation + 1, epoch=2))
        wait_until(lambda: members.owned() == all_to_one(base), what="the second plan")

        assert after == base
        assert members.generation == generation + 2


def test_member_that_joins_voids_the_plan(stage: Stage) -> None:
    with Members() as members:
        base = three(members, stage, kafka_python_eager)
        stage.publish(stage.plan(base, all_to_one(base), generation=members.generation))
        wait_until(lambda: members.owned() == all_to_one(base), what="the target")

        members.add(stage.follower())
        owned = members.settled(stage.places, after=members.generation)

        assert Counter(map(len, owned.values())) == {2: 2, 1: 2}


def test_expired_plan_is_not_applied(stage: Stage) -> None:
    with Members() as members:
        base = three(members, stage, kafka_python_eager)
        expired = stage.plan(base, all_to_one(base), generation=members.generation)
        other = {**base, min(base): base[max(base)], max(base): base[min(base)]}

        stage.publish(replace(expired, valid_until_ms=1))
        stage.publish(stage.plan(base, other, generation=members.generation, epoch=2))
        wait_until(lambda: members.owned() == other, what="the second plan")

        assert not any(view.owned == all_to_one(base)[min(base)] for m in members.all for view in m.views)


def test_group_comes_over_from_range_one_member_at_a_time(stage: Stage) -> None:
    """One rolling bounce; while any member lists `range` alone, `range` it is (KIP-726)."""
    beside = [RangePartitionAssignor]
    with Members() as members:
        old = [
            members.add(KafkaPythonMember(stage.bootstrap, stage.name, [stage.name], beside=beside))
            for _ in "ab"
        ]
        members.settled(stage.places)
        selected, base = [], {}
        for leaving in old:
            generation = members.generation
            members.stop(leaving)
            members.add(stage.follower(beside=beside))
            base = members.settled(stage.places, after=generation)
            selected.append({member.assignor for member in members.all})

        stage.publish(stage.plan(base, all_to_one(base), generation=members.generation))
        wait_until(lambda: members.owned() == all_to_one(base), what="the target")

        assert selected == [{"range"}, {"lagwise"}]


def test_stream_join_keeps_numbers_together_without_a_control_topic(stage: Stage) -> None:
    create_topics(stage.bootstrap, {f"{stage.name}-2": PARTITIONS})
    topics = [stage.name, f"{stage.name}-2"]
    places = [(topic, number) for topic in topics for number in range(PARTITIONS)]

    def member() -> PluginMember:
        return KafkaPythonMember(
            stage.bootstrap, stage.name, topics, strategy="sticky-stream-join", protocol=COOPERATIVE
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


def test_consumer_that_polls_briefly_is_freed_from_its_join(stage: Stage) -> None:
    """The leader joins again because of new metadata, and its poll ends while that join is under way."""
    with Members() as members:
        member = members.add(
            KafkaPythonMember(stage.bootstrap, stage.name, [stage.name], strategy="sticky", poll_ms=5)
        )

        wait_until(lambda: len(member.read) == PARTITIONS * RECORDS, what="all records", within_s=20)
