"""The private parts of aiokafka that the plug-in leans on: this fails when a release changes them."""

import asyncio
import inspect
from collections.abc import Mapping
from importlib import metadata
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError
from aiokafka.protocol.group import JoinGroupRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from assignor.clients.aiokafka.private import (
    before_assigning,
    generation_of,
    is_joining,
    member_id_of,
    request_rejoin,
)
from assignor.protocol.kafka.consumer import Subscription, encode_subscription


async def _coordinated() -> AIOKafkaConsumer:
    """A consumer with the coordinator that `start` gives it, without a broker."""
    consumer = AIOKafkaConsumer(group_id="g")
    assert consumer._coordinator is None
    client = SimpleNamespace(cluster=ClusterMetadata())
    consumer._coordinator = GroupCoordinator(client, SubscriptionState(), group_id="g")
    return consumer


async def _stop(consumer: AIOKafkaConsumer) -> None:
    task = consumer._coordinator._coordination_task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    consumer._closed = True


def test_release_is_the_one_that_was_read() -> None:
    assert metadata.version("aiokafka") == "0.14.0"


def test_requested_rejoin_is_needed() -> None:
    async def scenario() -> tuple[bool, bool]:
        consumer = await _coordinated()
        joined = SimpleNamespace(assignment=object())
        before = consumer._coordinator.need_rejoin(joined)
        request_rejoin(consumer)
        after = consumer._coordinator.need_rejoin(joined)
        await _stop(consumer)
        return before, after

    assert asyncio.run(scenario()) == (False, True)


def test_member_joins_from_the_request_until_it_has_its_assignment() -> None:
    """Driven through a whole join, with the answers of a broker; another request in its midst is remembered."""
    seen: list[tuple[str, bool]] = []

    async def scenario() -> bool:
        consumer = await _coordinated()
        await _stop(consumer)
        assert not is_joining(consumer)
        coordinator = consumer._coordinator
        coordinator.coordinator_id = 0

        def see(where: str) -> None:
            seen.append((where, is_joining(consumer)))

        async def answer(request: object) -> object:
            see(type(request).__name__)
            if isinstance(request, JoinGroupRequest):
                return SimpleNamespace(
                    error_code=0, member_id="m", leader_id="n", generation_id=7, group_protocol="mine"
                )
            request_rejoin(consumer)
            return SimpleNamespace(
                error_code=0,
                member_assignment=ConsumerProtocolMemberAssignment(0, [("t", [0])], b"").encode(),
            )

        coordinator._send_req = answer
        coordinator._assignors = [
            SimpleNamespace(name="mine", metadata=lambda _: b"", on_assignment=lambda _: see("assigned"))
        ]
        coordinator._subscription.subscribe({"t"})
        request_rejoin(consumer)
        see("requested")
        await coordinator.ensure_active_group(coordinator._subscription.subscription, None)
        needs_another = coordinator.need_rejoin(coordinator._subscription.subscription)
        # Tasks that have not begun cannot end in order.
        await asyncio.sleep(0)
        await coordinator._stop_heartbeat_task()
        await coordinator._stop_commit_offsets_refresh_task()
        return needs_another

    assert asyncio.run(scenario())
    assert seen == [
        ("requested", True),
        ("JoinGroupRequest", True),
        ("SyncGroupRequest", True),
        ("assigned", True),
    ]


def test_consumer_that_was_not_started_has_yet_to_join() -> None:
    async def scenario() -> bool:
        consumer = AIOKafkaConsumer(group_id="g")
        joins = is_joining(consumer)
        consumer._closed = True
        return joins

    assert asyncio.run(scenario())


def test_generation_is_the_one_the_client_commits_with() -> None:
    async def scenario() -> tuple[int, int]:
        consumer = await _coordinated()
        before = generation_of(consumer)
        consumer._coordinator.generation = 7
        after = generation_of(consumer)
        await _stop(consumer)
        return before, after

    assert asyncio.run(scenario()) == (-1, 7)


def test_member_id_is_the_one_the_client_commits_with() -> None:
    async def scenario() -> tuple[str, str]:
        consumer = await _coordinated()
        before = member_id_of(consumer)
        consumer._coordinator.member_id = "m"
        after = member_id_of(consumer)
        await _stop(consumer)
        return before, after

    assert asyncio.run(scenario()) == ("", "m")


def test_leader_waits_before_it_assigns_and_sees_whole_subscriptions() -> None:
    """Driven from where a response to join makes the consumer the leader, as by the client."""
    subscription = encode_subscription(Subscription(topics=("t",), owned={"t": (1,)}, generation=4))
    seen: list[object] = []

    class Assignor:
        name = "mine"

        def assign(self, _cluster: object, members: dict[str, Any]) -> dict[str, Any]:
            seen.append(sorted(members))
            return {}

    async def prepare(selected: str, subscriptions: Mapping[str, bytes]) -> None:
        await asyncio.sleep(0)
        seen.append((selected, dict(subscriptions)))

    async def scenario() -> None:
        consumer = await _coordinated()
        coordinator = consumer._coordinator
        coordinator._assignors = [Assignor()]
        coordinator._client.set_topics = lambda _: None
        coordinator._client._maybe_wait_metadata = lambda: asyncio.sleep(0)
        coordinator._get_metadata_snapshot = dict
        coordinator._subscription.subscribe({"t"})
        before_assigning(consumer, prepare)
        response = SimpleNamespace(
            API_VERSION=5, group_protocol="mine", members=[("m", "instance", subscription)]
        )
        await coordinator._perform_assignment(response)
        await _stop(consumer)

    asyncio.run(scenario())

    assert seen == [("mine", {"m": subscription}), ["m"]]
    assert "self._coordinator._perform_assignment(response)" in inspect.getsource(
        CoordinatorGroupRebalance._on_join_leader
    )


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(IllegalGenerationError, ""), (UnknownMemberIdError, ""), (RebalanceInProgressError, "a")],
)
def test_commit_that_meets_a_rebalance_makes_the_client_join_once_more(error: Any, member_id: str) -> None:
    """As a new member where its generation was over by then: what following-assignors.md says of commits in a join."""

    async def commits() -> tuple[bool, str]:
        consumer = await _coordinated()
        coordinator = consumer._coordinator
        coordinator.generation, coordinator.member_id = 5, "a"
        # The join is through: what is asked from here on is one more.
        coordinator._rejoin_needed_fut = asyncio.get_running_loop().create_future()
        coordinator._send_req = AsyncMock(return_value=SimpleNamespace(topics=[("t", [(0, error.errno)])]))
        with pytest.raises(error):
            await coordinator._do_commit_offsets(None, {TopicPartition("t", 0): OffsetAndMetadata(7, "")})
        found = coordinator._rejoin_needed_fut.done(), str(coordinator.member_id)
        await _stop(consumer)
        return found

    assert asyncio.run(commits()) == (True, member_id)
