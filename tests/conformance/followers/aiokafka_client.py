"""The plug-in of aiokafka as a process under trial: python -m tests.conformance.followers.aiokafka_client."""

import asyncio
import contextlib
import time
from collections.abc import Collection
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from assignor.clients.aiokafka import Following
from assignor.clients.aiokafka.private import generation_of, member_id_of
from tests.conformance.followers.talk import (
    COMMIT_EVERY_S,
    ENVIRONMENT,
    NAME,
    SESSION_MS,
    listed,
    say,
    told_to_stop,
)


class Process(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Processes each record as it is fetched."""

    _consumer: Any

    async def run(self) -> None:
        """Until it is told to stop."""
        servers, group = ENVIRONMENT["bootstrap_servers"], ENVIRONMENT["group"]
        async with Following(
            cluster=ENVIRONMENT["cluster"],
            group_id=group,
            control_topic=ENVIRONMENT["control_topic"],
            acks_topic=ENVIRONMENT["acks_topic"],
            bootstrap_servers=servers,
        ) as following:
            self._consumer = AIOKafkaConsumer(
                bootstrap_servers=servers,
                group_id=group,
                client_id=NAME,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=300,
                partition_assignment_strategy=[following.assignor],
            )
            following.attach(self._consumer)
            self._consumer.subscribe([ENVIRONMENT["topic"]], listener=self)
            await self._consumer.start()
            try:
                await self._consume()
            finally:
                # The client leaves the group without a call of its listener.
                await self.on_partitions_revoked(self._consumer.assignment())
                await self._consumer.stop()
        say("stopped")

    async def _consume(self) -> None:
        committed_s = 0.0
        while not told_to_stop.is_set():
            for records in (await self._consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    say("record", record.partition, record.offset)
            if time.monotonic() - committed_s > COMMIT_EVERY_S:
                committed_s = time.monotonic()
                await self._commit()

    async def _commit(self) -> None:
        with contextlib.suppress(KafkaError):
            await self._consumer.commit()

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        generation, places = generation_of(self._consumer), listed([place.partition for place in assigned])
        say("gained", generation, places)
        say("joined", generation, member_id_of(self._consumer), places)

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        await self._commit()
        say("revoked", listed([place.partition for place in revoked]))


if __name__ == "__main__":
    asyncio.run(Process().run())
