"""The assignors of kafka-python, driven as the client drives them, without a broker."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.base import Generation
from kafka.errors import KafkaConfigurationError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from assignor.clients.kafka_python import COOPERATIVE, EAGER, Following, MemberAssignor, StrategyAssignor
from assignor.clients.kafka_python import assignors as kafka_python
from assignor.clients.plugin.membership import NotAttachedError
from assignor.clients.plugin.user_data import (
    AssignmentData,
    Outcome,
    encode_assignment_data,
    subscription_data_of,
)
from assignor.errors import InvalidOptionError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck, Refused
from assignor.protocol.kafka.consumer import decode_subscription
from assignor.protocol.kafka.sticky import Claims

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 5)}


class Cluster:
    """Metadata of one topic."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2, 3} if topic == "t" else None


def consumer(*assignors: Any) -> KafkaConsumer:
    return KafkaConsumer("t", group_id="g", partition_assignment_strategy=list(assignors), **NOWHERE)


def holding(*numbers: int) -> Any:
    return SimpleNamespace(
        _coordinator=SimpleNamespace(rejoining=True, _generation=Generation(1, "m", "lagwise")),
        assignment=lambda: {TopicPartition("t", number) for number in numbers},
        group_metadata=lambda: SimpleNamespace(member_id="m"),
    )


def joined(member_id: str, assignor: MemberAssignor) -> SimpleNamespace:
    metadata = ConsumerProtocolSubscription.decode(assignor.metadata({"t"}).encode())
    return SimpleNamespace(member_id=member_id, metadata=metadata, group_instance_id=None)


def rebalance(assignors: dict[str, MemberAssignor], *, generation: int) -> dict[str, list[int]]:
    """One rebalance led by the first; what each gets of the topic."""
    members = [joined(member_id, assignor) for member_id, assignor in assignors.items()]
    answers = next(iter(assignors.values())).assign(Cluster(), members)
    received = {i: ConsumerProtocolAssignment.decode(answers[i].encode()) for i in assignors}
    for member_id, assignor in assignors.items():
        assignor.on_assignment(received[member_id], generation)
    return {i: [partition for _, partition in received[i].partitions()] for i in assignors}


def idle() -> Any:
    """A consumer whose group is at rest."""
    coordinator = SimpleNamespace(rebalance_in_progress=lambda: False)
    return SimpleNamespace(_coordinator=coordinator, group_metadata=lambda: SimpleNamespace(member_id="m"))


def refused(assignor: MemberAssignor) -> None:
    """What the leader says where plan 3 does not fit."""
    word = encode_assignment_data(AssignmentData(epoch=3, outcome=Outcome.REFUSED, why="not mine"))
    assignor.on_assignment(ConsumerProtocolAssignment(version=0, assigned_partitions=[], user_data=word), 8)


class Writer:
    """A producer that keeps what it is to send."""

    DEFAULT_CONFIG = KafkaProducer.DEFAULT_CONFIG
    sent: ClassVar[list[AnyAck]] = []

    def __init__(self, **settings: Any) -> None:
        # The settings are those of a producer, whatever else the reader of the control topic was given.
        KafkaProducer(**settings).close()

    def send(self, topic: str, *, key: bytes, value: bytes, partition: int) -> Any:
        assert (topic, partition) == ("acks", 0)
        self.sent.append(acks.decode(key, value))
        return SimpleNamespace(add_errback=lambda _: None)

    def close(self, _within_s: float) -> None: ...


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[AnyAck]:
    monkeypatch.setattr(kafka_python, "KafkaProducer", Writer)
    Writer.sent.clear()
    return Writer.sent


@pytest.fixture
def beside_range() -> Iterator[KafkaConsumer]:
    made = consumer(StrategyAssignor("sticky"), RangePartitionAssignor)
    yield made
    made.close()


def test_eager_member_keeps_its_partitions_through_rebalances() -> None:
    a, b = StrategyAssignor("sticky"), StrategyAssignor("sticky")
    alone = rebalance({"a": a}, generation=1)
    both = rebalance({"b": b, "a": a}, generation=2)

    assert alone == {"a": [0, 1, 2, 3]}
    assert set(both["a"]) < set(alone["a"])
    assert rebalance({"a": a, "b": b}, generation=3) == both


def test_topic_without_metadata_is_left_out() -> None:
    a = StrategyAssignor("sticky")
    member = joined("a", a)
    member.metadata.topics = ["t", "unknown"]

    assert [t for t, _ in a.assign(Cluster(), [member])["a"].assigned_partitions] == ["t"]


def test_cooperative_member_keeps_reading_until_it_has_revoked() -> None:
    a, b = (StrategyAssignor("cooperative-sticky", COOPERATIVE) for _ in "ab")
    a.attach(holding())
    b.attach(holding())
    rebalance({"a": a}, generation=1)

    a.attach(holding(0, 1, 2, 3))
    first = rebalance({"a": a, "b": b}, generation=2)
    a.attach(holding(*first["a"]))
    second = rebalance({"a": a, "b": b}, generation=3)

    assert (len(first["a"]), first["b"]) == (2, [])
    assert sorted(second["a"] + second["b"]) == [0, 1, 2, 3]
    assert second["a"] == first["a"]


def test_group_half_eager_half_cooperative_hands_over_only_what_is_free() -> None:
    """As between the two bounces that take a group to the cooperative protocol."""
    eager, cooperative = (
        StrategyAssignor("cooperative-sticky"),
        StrategyAssignor("cooperative-sticky", COOPERATIVE),
    )
    cooperative.attach(holding())
    rebalance({"c": cooperative}, generation=1)
    cooperative.attach(holding(0, 1, 2, 3))

    first = rebalance({"e": eager, "c": cooperative}, generation=2)
    cooperative.attach(holding(*first["c"]))
    second = rebalance({"e": eager, "c": cooperative}, generation=3)

    assert (first["e"], len(second["e"])) == ([], 2)


def test_cooperative_member_shows_what_it_holds_to_tools_as_well() -> None:
    a = StrategyAssignor("cooperative-sticky", COOPERATIVE)
    a.attach(holding(2, 0))
    a.on_assignment(
        ConsumerProtocolAssignment(version=0, assigned_partitions=[("t", [0, 2])], user_data=b""), 6
    )

    subscription = decode_subscription(a.metadata({"t"}).encode())

    assert (subscription.owned, subscription.generation) == ({"t": (0, 2)}, 6)
    assert subscription_data_of(subscription.user_data).claims == Claims(owned={"t": (0, 2)}, generation=6)


def test_cooperative_member_that_lost_what_it_holds_does_not_claim_it() -> None:
    a = StrategyAssignor("cooperative-sticky", COOPERATIVE)
    member = holding(0, 2)
    a.attach(member)
    member._coordinator._generation = Generation.NO_GENERATION

    with pytest.raises(RebalanceInProgressError, match="lost"):
        a.metadata({"t"})


def test_cooperative_member_without_its_consumer_does_not_join() -> None:
    with pytest.raises(NotAttachedError, match="attach"):
        StrategyAssignor("cooperative-sticky", COOPERATIVE).metadata({"t"})


def test_strategy_of_one_step_is_not_cooperative() -> None:
    with pytest.raises(InvalidOptionError, match="EAGER"):
        StrategyAssignor("sticky", COOPERATIVE)


def test_client_takes_the_assignor_beside_its_own(beside_range: KafkaConsumer) -> None:
    protocols = beside_range._coordinator.group_protocols()

    assert [name for name, _ in protocols] == ["lagwise-sticky", "range"]


def test_client_refuses_eager_beside_cooperative() -> None:
    made = KafkaConsumer.__new__(KafkaConsumer)
    both = [StrategyAssignor("cooperative-sticky", COOPERATIVE), RangePartitionAssignor]

    with pytest.raises(KafkaConfigurationError, match="common RebalanceProtocol"):
        made.__init__("t", group_id="g", partition_assignment_strategy=both, **NOWHERE)  # type: ignore[misc]

    # A consumer that was refused leaves its thread running, and no way to close it.
    made._client.close()


def test_watch_frees_a_consumer_whose_join_nobody_finishes() -> None:
    assignor = StrategyAssignor("sticky")
    asked: list[str] = []
    coordinator = SimpleNamespace(
        rebalance_in_progress=lambda: True,
        need_rejoin=lambda: bool(asked),
        request_rejoin=lambda: asked.append("rejoin"),
    )
    assignor.attach(SimpleNamespace(_coordinator=coordinator))

    assignor.watch()
    assignor.watch()

    assert asked == ["rejoin"]


def test_following_needs_its_consumer_to_keep_up() -> None:
    with (
        Following(cluster="local", group_id="g", protocol=EAGER, **NOWHERE) as following,
        pytest.raises(NotAttachedError, match="attach"),
    ):
        following.keep_up()


def test_following_acknowledges_what_became_of_the_plan(sent: list[AnyAck]) -> None:
    with Following(cluster="local", group_id="g", protocol=EAGER, acks_topic="acks", **NOWHERE) as following:
        following.attach(idle())
        refused(following.assignor)

        following.keep_up()
        following.keep_up()

    assert [(ack.member, ack.epoch, ack.generation, ack.why) for ack in sent if isinstance(ack, Refused)] == [
        ("m", 3, 8, "not mine")
    ]


def test_following_without_an_acks_topic_says_nothing(sent: list[AnyAck]) -> None:
    with Following(cluster="local", group_id="g", protocol=EAGER, acks_topic=None, **NOWHERE) as following:
        following.attach(idle())
        refused(following.assignor)

        following.keep_up()

    assert sent == []
