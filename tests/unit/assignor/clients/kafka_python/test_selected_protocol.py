"""The rebalance protocol of a kafka-python member is that of the assignor its group selected (KIP-726)."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.base import Generation
from kafka.errors import RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState, TopicPartition

from assignor.clients.kafka_python import COOPERATIVE, EAGER, Following, StrategyAssignor, default_assignors
from assignor.clients.kafka_python.private import is_cooperative
from assignor.protocol.kafka.consumer import decode_subscription

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 5)}
PLACE = TopicPartition("t", 0)


class Told(ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """What a user hears: which call, of which partitions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.calls.append(("assigned", set(assigned)))

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.calls.append(("revoked", set(revoked)))

    def on_partitions_lost(self, lost: Any) -> None:
        self.calls.append(("lost", set(lost)))


class Member:
    """A consumer without a broker, which is told what a broker answers."""

    def __init__(self, *assignors: Any) -> None:
        self.told = Told()
        self.consumer = KafkaConsumer(group_id="g", partition_assignment_strategy=list(assignors), **NOWHERE)
        self.consumer.subscribe(["t"], listener=self.told)
        self.coordinator = self.consumer._coordinator
        assignors[0].attach(self.consumer)

    def join(self, selected: str, *, generation: int) -> None:
        """JoinGroup, and its answer."""
        coordinator = self.coordinator
        if not coordinator.rejoining:
            before = coordinator._generation
            coordinator._net.run(coordinator._on_join_prepare_async, before.generation_id, before.member_id)
            coordinator.rejoining = True
        coordinator.state = MemberState.REBALANCING
        answer = SimpleNamespace(
            error_code=0,
            protocol_type="consumer",
            generation_id=generation,
            member_id="m",
            protocol_name=selected,
        )
        coordinator._process_join_group_response(answer, 0.0)

    def sync(self, *numbers: int) -> None:
        """SyncGroup's answer."""
        coordinator = self.coordinator
        coordinator.rejoining = False
        coordinator.state = MemberState.STABLE
        given = ConsumerProtocolAssignment(
            version=0, assigned_partitions=[("t", list(numbers))], user_data=b""
        )
        now = coordinator._generation
        coordinator._net.run(
            coordinator._on_join_complete_async, now.generation_id, "m", now.protocol, given.encode()
        )

    def owned_fields(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """What each entry of the list would say in JoinGroup that the member owns."""
        said = self.coordinator.group_protocols()
        return {name: dict(decode_subscription(data.encode()).owned) for name, data in said}


Make = Callable[..., Member]


@pytest.fixture
def member() -> Iterator[Make]:
    made: list[Member] = []

    def make(*assignors: Any) -> Member:
        made.append(Member(*(assignors or default_assignors())))
        return made[-1]

    yield make
    for one in made:
        one.coordinator.state = MemberState.UNJOINED
        one.coordinator._generation = Generation.NO_GENERATION
        one.consumer.close()


def cooperative_with_a_partition(make: Make) -> Member:
    one = make()
    one.join("cooperative-sticky", generation=7)
    one.sync(0)
    one.told.calls.clear()
    return one


def test_default_list_is_that_of_the_kip_and_has_its_protocols() -> None:
    listed = {entry.name: entry.supported_protocols() for entry in default_assignors()}

    assert list(listed) == ["cooperative-sticky", "range"]
    assert listed["cooperative-sticky"] == [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]
    assert listed["range"] == [RebalanceProtocol.EAGER]


def test_default_list_can_be_had_eager() -> None:
    listed = [(entry.name, entry.supported_protocols()) for entry in default_assignors(EAGER)]

    assert listed == [(name, [RebalanceProtocol.EAGER]) for name in ("cooperative-sticky", "range")]


def test_following_cooperatively_lists_all_of_the_kip_behind_the_plans() -> None:
    following = Following(cluster="c", group_id="g", protocol=COOPERATIVE, bootstrap_servers="127.0.0.1:1")

    assert [entry.name for entry in following.assignors] == ["lagwise", "cooperative-sticky", "range"]


@pytest.mark.parametrize(
    ("name", "protocols"),
    [
        ("constrained-cooperative-sticky", [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]),
        ("cooperative-sticky", [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]),
        ("sticky-stream-join", [RebalanceProtocol.EAGER]),
        ("sticky", [RebalanceProtocol.EAGER]),
    ],
)
def test_entry_announces_the_protocols_that_its_kip_says(
    name: str, protocols: list[RebalanceProtocol]
) -> None:
    assert StrategyAssignor(name).supported_protocols() == protocols


def test_cooperative_entry_stands_beside_an_assignor_of_the_client(member: Make) -> None:
    one = member(StrategyAssignor("constrained-cooperative-sticky", COOPERATIVE), RangePartitionAssignor)

    assert not is_cooperative(one.consumer)


def test_member_is_eager_while_range_is_selected(member: Make) -> None:
    one = member()
    one.join("range", generation=1)
    one.sync(0)

    one.join("range", generation=2)

    assert one.told.calls == [("revoked", set()), ("assigned", {PLACE}), ("revoked", {PLACE})]
    assert one.owned_fields() == {"cooperative-sticky": {}, "range": {}}


def test_member_keeps_its_partitions_once_a_cooperative_assignor_was_selected(member: Make) -> None:
    one = member()
    one.join("range", generation=1)
    one.sync(0)
    one.join("cooperative-sticky", generation=2)
    one.sync(0)
    one.told.calls.clear()

    one.join("cooperative-sticky", generation=3)
    owned = one.owned_fields()["cooperative-sticky"]
    one.sync(0)

    assert owned == {"t": (0,)}
    assert one.told.calls == []


def test_member_that_joined_eager_is_told_of_all_it_is_assigned(member: Make) -> None:
    one = member()
    one.join("range", generation=1)
    one.sync(0)

    one.join("cooperative-sticky", generation=2)
    one.sync(0, 1)

    assert one.told.calls[-2:] == [("revoked", {PLACE}), ("assigned", {PLACE, TopicPartition("t", 1)})]


def test_eager_assignor_takes_from_a_cooperative_member_what_it_kept(member: Make) -> None:
    one = cooperative_with_a_partition(member)

    with pytest.raises(RebalanceInProgressError, match="range is eager"):
        one.join("range", generation=8)
    may_commit = one.coordinator.generation_if_stable()
    one.join("range", generation=9)

    assert may_commit is None
    assert one.told.calls == [("lost", {PLACE})]
    assert one.coordinator._generation.member_id == "m"


def test_member_that_lost_its_partitions_joins_with_none_and_is_told_of_new_ones(member: Make) -> None:
    one = cooperative_with_a_partition(member)
    with pytest.raises(RebalanceInProgressError):
        one.join("range", generation=8)

    one.join("range", generation=9)
    owned = one.owned_fields()
    one.sync(0)

    assert owned == {"cooperative-sticky": {}, "range": {}}
    assert one.told.calls == [("lost", {PLACE}), ("assigned", {PLACE})]


def test_cooperative_member_without_partitions_goes_eager_and_loses_nothing(member: Make) -> None:
    one = member()
    one.join("cooperative-sticky", generation=7)
    one.sync()

    one.join("range", generation=8)
    one.sync(0)

    assert [call for call, _ in one.told.calls].count("lost") == 0
    assert not is_cooperative(one.consumer)


def test_member_goes_back_and_forth(member: Make) -> None:
    one = cooperative_with_a_partition(member)
    with pytest.raises(RebalanceInProgressError):
        one.join("range", generation=8)
    one.join("range", generation=9)
    one.sync(0)
    eager = is_cooperative(one.consumer)

    one.join("cooperative-sticky", generation=10)
    one.sync(0)

    assert (eager, is_cooperative(one.consumer)) == (False, True)


def test_attaching_again_asks_the_same_question_once(member: Make) -> None:
    one = member()
    answered = one.coordinator._process_join_group_response

    StrategyAssignor("cooperative-sticky", COOPERATIVE).attach(one.consumer)

    assert one.coordinator._process_join_group_response is answered
