"""The follower of confluent-kafka as a process under trial: python -m tests.conformance.followers.confluent [WRONG …].

Each WRONG makes it one that the kit has to find out, by a name of `wrong.FOLLOWERS` or `wrong.CHANGES`.
"""

import sys
import time
from typing import Any

from confluent_kafka import Message, TopicPartition

from assignor.clients.confluent import Follower
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

_CONFIG = {
    "bootstrap.servers": ENVIRONMENT["bootstrap_servers"],
    "group.id": ENVIRONMENT["group"],
    "client.id": NAME,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": SESSION_MS,
    "heartbeat.interval.ms": 300,
    "log_level": 2,
}


class Process:
    """Processes each record as it is polled."""

    def __init__(self, kind: type[Follower]) -> None:
        self.follower = kind(
            _CONFIG,
            [ENVIRONMENT["topic"]],
            cluster=ENVIRONMENT["cluster"],
            control_topic=ENVIRONMENT["control_topic"],
            acks_topic=ENVIRONMENT["acks_topic"],
            take_timeout_s=int(ENVIRONMENT["take_timeout_ms"]) / 1000,
            on_gained=self.gained,
            on_revoked=self.revoked,
            on_lost=lambda partitions: say("lost", listed(_numbers(partitions))),
        )
        self._joined: tuple[Any, ...] = ()

    def run(self) -> None:
        """Until it is told to stop."""
        committed_s = 0.0
        with self.follower:
            while not told_to_stop.is_set():
                message = self.follower.poll(0.1)
                self.look()
                if message is None or message.error() is not None:
                    continue
                self.process(message)
                if time.monotonic() - committed_s > COMMIT_EVERY_S:
                    committed_s = time.monotonic()
                    self.follower.commit()
        say("stopped")

    def process(self, message: Message) -> None:
        say("record", message.partition(), message.offset())

    def look(self) -> None:
        state = self.follower.state
        joined = (state.generation, state.member)
        if state.settled and joined != self._joined:
            self._joined = joined
            say("joined", *joined, listed([partition for _, partition in state.base]))

    def gained(self, partitions: list[TopicPartition]) -> None:
        say("gained", self.follower.state.generation, listed(_numbers(partitions)))

    def revoked(self, partitions: list[TopicPartition]) -> None:
        self.follower.commit()
        say("revoked", listed(_numbers(partitions)))


def _numbers(partitions: list[TopicPartition]) -> list[int]:
    return [partition.partition for partition in partitions]


if __name__ == "__main__":
    names = sys.argv[1:]
    for change in names:
        if change not in wrong.FOLLOWERS:
            wrong.CHANGES[change]()
    Process(next((wrong.FOLLOWERS[name] for name in names if name in wrong.FOLLOWERS), Follower)).run()
