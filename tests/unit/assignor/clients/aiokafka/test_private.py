"""The private parts of aiokafka that the plug-in leans on: this fails when a release changes them."""

import asyncio
from importlib import metadata
from types import SimpleNamespace

from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState

from assignor.clients.aiokafka.private import generation_of, member_id_of, request_rejoin


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
