"""The assignors of kafka-python, driven as the client drives them, without a broker."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.base import Generation
from kafka.errors import KafkaConfigurationError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from assignor.clients.kafka_python import (
    COOPERATIVE,
    EAGER,
    LagAwareAssignor,
    MemberAssignor,
    StrategyAssignor,
)
from assignor.clients.kafka_python import lag_aware as of_kafka_python_lag
from assignor.clients.plugin.membership import NotAttachedError
from assignor.clients.plugin.user_data import subscription_data_of
from assignor.errors import InvalidOptionError
from assignor.protocol.kafka.consumer import Subscription, decode_subscription, encode_subscription
from assignor.protocol.kafka.sticky import Claims, decode_sticky_user_data

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 5)}


class Cluster:
    """Metadata of one topic."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2, 3} if topic == "t" else None


def consumer(*assignors: Any) -> KafkaConsumer:
    return KafkaConsumer("t", group_id="g", partition_assignment_strategy=list(assignors), **NOWHERE)


def holding(*numbers: int) -> Any:
    return SimpleNamespace(
        _coordinator=SimpleNamespace(
            rejoining=True,
            _generation=Generation(1, "m", "lagwise"),
            _rebalance_protocol=COOPERATIVE,
            _process_join_group_response=None,
        ),
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
        StrategyAssignor("cooperative-sticky", EAGER),
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
    a = StrategyAssignor("constrained-cooperative-sticky", COOPERATIVE)
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

    assert [name for name, _ in protocols] == ["sticky", "range"]


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


def test_list_of_a_rolling_bounce_has_both_names_for_one_member() -> None:
    new = StrategyAssignor("sticky")
    old = new.under_old_name()
    rebalance({"a": old}, generation=3)

    claims = decode_sticky_user_data(new.metadata({"t"}).user_data)
    assert (new.name, old.name) == ("sticky", "lagwise-sticky")
    assert claims == Claims(owned={"t": (0, 1, 2, 3)}, generation=3)


def test_old_name_has_the_same_consumer() -> None:
    new = StrategyAssignor("constrained-cooperative-sticky", COOPERATIVE)
    old = new.under_old_name()

    new.attach(holding(0, 2))

    assert decode_subscription(old.metadata({"t"}).encode()).owned == {"t": (0, 2)}


def test_leader_waits_for_a_cooperative_member_of_java() -> None:
    eager = StrategyAssignor("cooperative-sticky", EAGER)
    java = Subscription(
        topics=("t",), user_data=b"\0\0\0\7", owned={"t": (0, 1, 2, 3)}, generation=7, rack="r"
    )
    metadata = ConsumerProtocolSubscription.decode(encode_subscription(java))
    java_member = SimpleNamespace(member_id="j", metadata=metadata, group_instance_id=None)

    answers = eager.assign(Cluster(), [joined("e", eager), java_member])

    given = {name: [number for _, number in answer.partitions()] for name, answer in answers.items()}
    assert (given["e"], len(given["j"])) == ([], 2)
    assert answers["j"].user_data is None


class Offsets:
    """Stands for the clients that are asked for offsets."""

    lags: ClassVar[dict[tuple[str, int], int]] = {("t", 0): 9, ("t", 1): 8, ("t", 2): 7, ("t", 3): 0}

    def told(self, counts: Any) -> dict[tuple[str, int], int]:
        assert counts == {"t": 4}
        return self.lags


def two(assignor: MemberAssignor) -> dict[str, list[int]]:
    answers = assignor.assign(Cluster(), [joined("a", assignor), joined("b", assignor)])
    return {name: [number for _, number in answer.partitions()] for name, answer in answers.items()}


def test_lag_aware_leader_places_by_the_lag_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assignor = LagAwareAssignor(group_id="g", **NOWHERE)
    monkeypatch.setattr(assignor, "_asked", Offsets().told)

    assert two(assignor) == {"a": [0, 3], "b": [1, 2]}


def test_lag_aware_leader_evens_counts_where_lag_cannot_be_had_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assignor = LagAwareAssignor(group_id="g", **NOWHERE)
    monkeypatch.setattr(assignor, "_asked", lambda _: threading.Event().wait(5))
    monkeypatch.setattr(of_kafka_python_lag, "LAG_WITHIN_S", 0.01)

    placed = two(assignor)

    assert len(placed["a"]) == len(placed["b"]) == 2
    assert "cannot be fetched" in caplog.text


def test_lag_aware_leader_that_is_a_static_member_asks_without_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Admin:
        DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {}

        def __init__(self, **_: Any) -> None: ...

        def list_group_offsets(self, asked: dict[str, Any]) -> dict[str, dict[Any, Any]]:
            return {group: {} for group in asked}

        def close(self) -> None: ...

    class Asker(KafkaConsumer):  # type: ignore[misc]  # the client has no types
        def beginning_offsets(self, partitions: list[Any], **_: Any) -> dict[Any, int]:
            return dict.fromkeys(partitions, 0)

        def end_offsets(self, partitions: list[Any], **_: Any) -> dict[Any, int]:
            return dict.fromkeys(partitions, 7)

    monkeypatch.setattr(of_kafka_python_lag, "KafkaAdminClient", Admin)
    monkeypatch.setattr(of_kafka_python_lag, "KafkaConsumer", Asker)
    assignor = LagAwareAssignor(group_id="g", auto_offset_reset="earliest", group_instance_id="a", **NOWHERE)

    assert assignor._asked({"t": 2}) == {("t", 0): 7, ("t", 1): 7}


def test_lag_aware_refuses_a_setting_that_no_consumer_has() -> None:
    with pytest.raises(KafkaConfigurationError, match="unheard_of"):
        LagAwareAssignor(group_id="g", unheard_of=1)
