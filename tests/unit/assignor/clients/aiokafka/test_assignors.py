"""The assignors of aiokafka, driven as the client drives them, without a broker."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.protocol.commit import OffsetFetchResponse_v3

from assignor.clients.aiokafka import LagAwareAssignor, MemberAssignor, StrategyAssignor, default_assignors
from assignor.clients.aiokafka import lag_aware as of_aiokafka_lag
from assignor.clients.plugin.membership import NotAttachedError
from assignor.clients.plugin.user_data import (
    AssignmentData,
    encode_assignment_data,
    subscription_data_of,
)
from assignor.errors import UnknownStrategyError
from assignor.protocol.kafka.consumer import Subscription, decode_subscription, encode_subscription
from assignor.protocol.kafka.sticky import Claims


class Cluster:
    """Metadata of one topic."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2, 3} if topic == "t" else None


class Coordinator:
    """What an assignor sees of its consumer's coordinator, which has it assign as the client does."""

    def __init__(self, assignor: MemberAssignor) -> None:
        self._assignor = assignor
        self.generation, self.member_id = 0, "m"
        self.asked: list[str] = []

    def request_rejoin(self) -> None:
        self.asked.append("rejoin")

    async def _perform_assignment(self, response: Any) -> dict[str, ConsumerProtocolMemberAssignment]:
        decoded = {name: ConsumerProtocolMemberMetadata.decode(data) for name, _, data in response.members}
        return self._assignor.assign(Cluster(), decoded)

    def led(self, **subscriptions: bytes) -> dict[str, ConsumerProtocolMemberAssignment]:
        members = [(name, None, data) for name, data in subscriptions.items()]
        response = SimpleNamespace(group_protocol=self._assignor.name, members=members)
        return asyncio.run(self._perform_assignment(response))


def attached(assignor: MemberAssignor | None = None) -> tuple[MemberAssignor, Coordinator]:
    """An assignor that joins, and the coordinator of its consumer."""
    assignor = assignor or StrategyAssignor("constrained-cooperative-sticky")
    coordinator = Coordinator(assignor)
    assignor.attach(SimpleNamespace(_coordinator=coordinator))
    assignor.metadata({"t"})
    return assignor, coordinator


def subscription(assignor: MemberAssignor) -> bytes:
    return bytes(assignor.metadata({"t"}).encode())


def numbers(answer: ConsumerProtocolMemberAssignment) -> list[int]:
    return [partition for _, partition in answer.partitions()]


def test_member_keeps_its_partitions_through_rebalances() -> None:
    (a, of_a), (b, of_b) = attached(), attached()
    of_a.generation = 3
    a.on_assignment(of_a.led(a=subscription(a))["a"])

    answers = of_b.led(b=subscription(b), a=subscription(a))

    said = subscription_data_of(decode_subscription(subscription(a)).user_data)
    assert said.claims.generation == 3
    assert (numbers(answers["a"]), numbers(answers["b"])) == ([0, 1], [2, 3])


def test_answer_survives_the_client() -> None:
    a, coordinator = attached()

    answer = coordinator.led(a=subscription(a))["a"]
    decoded = ConsumerProtocolMemberAssignment.decode(answer.encode())

    assert (numbers(decoded), decoded.user_data) == ([0, 1, 2, 3], answer.user_data)


@pytest.mark.parametrize("name", ["constrained-cooperative-sticky", "cooperative-sticky"])
def test_leader_waits_for_a_cooperative_member_of_another_client(name: str) -> None:
    a, coordinator = attached(StrategyAssignor(name))
    other = Subscription(topics=("t",), user_data=None, owned={"t": (0, 1, 2, 3)}, generation=7)

    answers = coordinator.led(a=subscription(a), c=encode_subscription(other))

    assert (numbers(answers["a"]), len(numbers(answers["c"]))) == ([], 2)


def test_leader_that_was_not_told_what_is_owned_does_not_assign() -> None:
    a, _ = attached()
    decoded = ConsumerProtocolMemberMetadata.decode(subscription(a))

    with pytest.raises(NotAttachedError, match="own"):
        a.assign(Cluster(), {"a": decoded})


def test_list_of_a_rolling_bounce_has_both_names_for_one_member() -> None:
    new = StrategyAssignor("sticky-stream-join")
    old = new.under_old_name()
    coordinator = SimpleNamespace(generation=4, member_id="m", _perform_assignment=None)
    new.attach(SimpleNamespace(_coordinator=coordinator))
    old.on_assignment(
        ConsumerProtocolMemberAssignment(0, [("t", [1])], encode_assignment_data(AssignmentData(epoch=9)))
    )

    claims = subscription_data_of(decode_subscription(subscription(new)).user_data).claims
    assert (new.name, old.name) == ("sticky-stream-join", "lagwise-sticky-stream-join")
    assert claims == Claims(owned={"t": (1,)}, generation=9)


def test_default_list_is_that_of_the_kip() -> None:
    assert [entry.name for entry in default_assignors()] == ["cooperative-sticky", "range"]


def test_lag_aware_leader_places_by_the_lag_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told(*_: object) -> dict[tuple[str, int], int]:
        return {("t", 0): 9, ("t", 1): 8, ("t", 2): 7, ("t", 3): 0}

    monkeypatch.setattr(LagAwareAssignor, "_ask", told)
    a, coordinator = attached(LagAwareAssignor(group_id="g"))

    answers = coordinator.led(a=subscription(a), b=subscription(a))

    assert (numbers(answers["a"]), numbers(answers["b"])) == ([0, 3], [1, 2])


def test_lag_aware_leader_evens_counts_where_lag_cannot_be_had_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(*_: object) -> dict[tuple[str, int], int]:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(LagAwareAssignor, "_ask", silent)
    monkeypatch.setattr(of_aiokafka_lag, "LAG_WITHIN_S", 0.01)
    a, coordinator = attached(LagAwareAssignor(group_id="g"))

    answers = coordinator.led(a=subscription(a), b=subscription(a))

    assert len(numbers(answers["a"])) == len(numbers(answers["b"])) == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]


class Admin(AIOKafkaAdminClient):  # type: ignore[misc]  # the client has no types
    """Its brokers describe topic `t`, and answer about commits as they are told to."""

    topics: ClassVar[list[Any]] = []
    error: ClassVar[int] = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def find_coordinator(self, *_: Any) -> int:
        return 1

    async def describe_topics(self, topics: list[str] | None = None) -> list[Any]:
        return [
            {"topic": topic, "partitions": [{"partition": 0}, {"partition": 1}]} for topic in topics or ()
        ]

    async def _send_request(self, *_: Any) -> OffsetFetchResponse_v3:
        return OffsetFetchResponse_v3(0, self.topics, self.error)


class Asker:
    """Each log has 100 records."""

    def __init__(self, **settings: Any) -> None:
        inspect.signature(AIOKafkaConsumer).bind(**settings)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def beginning_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, 0)

    async def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, 100)


@pytest.fixture
def lag_aware(monkeypatch: pytest.MonkeyPatch) -> LagAwareAssignor:
    monkeypatch.setattr(of_aiokafka_lag, "AIOKafkaAdminClient", Admin)
    monkeypatch.setattr(of_aiokafka_lag, "AIOKafkaConsumer", Asker)
    return LagAwareAssignor(group_id="g", auto_offset_reset="earliest")


def test_lag_aware_leader_computes_lag_from_the_commits_that_there_are(
    lag_aware: LagAwareAssignor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Admin, "topics", [("t", [(0, 70, "", 0), (1, -1, "", 0)])])

    assert asyncio.run(lag_aware._asked(frozenset({"t"}))) == {("t", 0): 30, ("t", 1): 100}


@pytest.mark.parametrize("error", [14, 16, 30], ids=["loading", "not the coordinator", "no right"])
def test_lag_is_unknown_to_a_leader_whose_question_for_commits_is_refused(
    lag_aware: LagAwareAssignor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: int
) -> None:
    """The client does not raise the error of the whole answer."""
    monkeypatch.setattr(Admin, "error", error)

    assert asyncio.run(lag_aware._asked(frozenset({"t"}))) is None
    assert "did not return the commits of 2 partitions" in caplog.records[0].__dict__["problem"]


def test_rejoin_reaches_the_consumer() -> None:
    a, coordinator = attached()

    a.rejoin()

    assert coordinator.asked == ["rejoin"]


def test_member_without_its_consumer_does_not_join() -> None:
    with pytest.raises(NotAttachedError, match="attach"):
        StrategyAssignor("sticky").metadata({"t"})


def test_strategy_that_weighs_lag_is_refused() -> None:
    with pytest.raises(UnknownStrategyError, match="no strategy 'lag-aware'"):
        StrategyAssignor("lag-aware")
