"""The assignors of aiokafka, driven as the client drives them, without a broker."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from assignor.clients.aiokafka import MemberAssignor, StrategyAssignor
from assignor.clients.plugin.membership import NotAttachedError
from assignor.clients.plugin.user_data import subscription_data_of
from assignor.errors import UnknownStrategyError
from tests.support.plans import joined


class Cluster:
    """Metadata of one topic."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2, 3} if topic == "t" else None


def attached(name: str = "sticky") -> tuple[MemberAssignor, Any]:
    """An assignor and the coordinator of its consumer."""
    asked: list[str] = []
    coordinator = SimpleNamespace(
        generation=0, member_id="m", asked=asked, request_rejoin=lambda: asked.append("rejoin")
    )
    assignor = StrategyAssignor(name)
    assignor.attach(SimpleNamespace(_coordinator=coordinator))
    return assignor, coordinator


def subscription(assignor: MemberAssignor) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocolMemberMetadata.decode(assignor.metadata({"t"}).encode())


def numbers(answer: ConsumerProtocolMemberAssignment) -> list[int]:
    return [partition for _, partition in answer.partitions()]


def test_member_keeps_its_partitions_through_rebalances() -> None:
    (a, of_a), (b, _) = attached(), attached()
    of_a.generation = 3
    a.on_assignment(a.assign(Cluster(), {"a": subscription(a)})["a"])

    answers = b.assign(Cluster(), {"b": subscription(b), "a": subscription(a)})

    assert subscription_data_of(subscription(a).user_data).claims.generation == 3
    assert (numbers(answers["a"]), numbers(answers["b"])) == ([0, 1], [2, 3])


def test_answer_survives_the_client() -> None:
    a, _ = attached()

    answer = a.assign(Cluster(), {"a": subscription(a)})["a"]
    decoded = ConsumerProtocolMemberAssignment.decode(answer.encode())

    assert (numbers(decoded), decoded.user_data) == ([0, 1, 2, 3], answer.user_data)


def test_leader_waits_for_a_cooperative_member_of_another_client() -> None:
    a, _ = attached("cooperative-sticky")
    cooperative = joined("c", ["t"], {"t": (0, 1, 2, 3)}, held=True)
    metadata = ConsumerProtocolMemberMetadata(2, ["t"], cooperative.user_data)

    answers = a.assign(Cluster(), {"a": subscription(a), "c": metadata})

    assert (numbers(answers["a"]), len(numbers(answers["c"]))) == ([], 2)


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
