"""The plug-in of kafka-python as a process under trial: python -m tests.conformance.followers.kafka_python eager|cooperative.

Further arguments make it one that the kit has to find out, by names of `wrong.CHANGES`.
"""

import contextlib
import sys
import time
from collections.abc import Collection
from typing import Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import MemberState, OffsetAndMetadata

from assignor.clients.kafka_python import Following
from assignor.strategies.catalogue import RebalanceProtocol
from tests.conformance.followers import wrong
from tests.conformance.followers.talk import (
    COMMIT_EVERY_S,
    ENVIRONMENT,
    NAME,
    SESSION_MS,
    listed,
    say,
    told_to_stop,
)


class Process(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Processes each record as it is polled."""

    def __init__(self, protocol: RebalanceProtocol) -> None:
        servers, group = ENVIRONMENT["bootstrap_servers"], ENVIRONMENT["group"]
        self._following = Following(
            cluster=ENVIRONMENT["cluster"],
            group_id=group,
            protocol=protocol,
            control_topic=ENVIRONMENT["control_topic"],
            acks_topic=ENVIRONMENT["acks_topic"],
            bootstrap_servers=servers,
        )
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            client_id=NAME,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[self._following.assignor],
        )
        self._following.attach(self._consumer)
        self._consumer.subscribe([ENVIRONMENT["topic"]], listener=self)
        self._next: dict[Any, int] = {}
        self._joined: tuple[Any, ...] = ()

    def run(self) -> None:
        """Until it is told to stop."""
        committed_s = 0.0
        with self._following, contextlib.closing(self._consumer):
            while not told_to_stop.is_set():
                self._following.keep_up()
                for place, records in self._consumer.poll(timeout_ms=100).items():
                    for record in records:
                        say("record", record.partition, record.offset)
                        self._next[place] = record.offset + 1
                self._look()
                if time.monotonic() - committed_s > COMMIT_EVERY_S:
                    committed_s = time.monotonic()
                    with contextlib.suppress(KafkaError):
                        self._consumer.commit()
            with contextlib.suppress(KafkaError):
                self._consumer.commit()
        say("stopped")

    def _look(self) -> None:
        # Those that neither gain nor lose anything in a cooperative rebalance are not called.
        group = self._consumer.group_metadata()
        joined = (group.generation_id, group.member_id, listed(_numbers(self._consumer.assignment())))
        if group.state == MemberState.STABLE and joined != self._joined:
            self._joined = joined
            say("joined", *joined)

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        say("gained", self._consumer.group_metadata().generation_id, listed(_numbers(assigned)))

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        offsets = {
            place: OffsetAndMetadata(self._next[place], "", -1) for place in revoked if place in self._next
        }
        if offsets:
            with contextlib.suppress(KafkaError):
                await self._consumer.commit_async(offsets)
        self._give_up("revoked", revoked)

    async def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self._give_up("lost", lost)

    def _give_up(self, what: str, places: Collection[Any]) -> None:
        for place in places:
            self._next.pop(place, None)
        say(what, listed(_numbers(places)))


def _numbers(places: Collection[Any]) -> list[int]:
    return [place.partition for place in places]


if __name__ == "__main__":
    for name in sys.argv[2:]:
        wrong.CHANGES[name]()
    Process(RebalanceProtocol[sys.argv[1].upper()]).run()
