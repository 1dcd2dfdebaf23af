"""One consumer process of a `Crew`: python -m tests.support.follow_member '{"who":"a", …}'.

With `hurt` it hurts itself at a state of the hand-over: "released:KILL", "checking:STOP".
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from assignor.clients.confluent import Follower
from assignor.clients.follower_state import Action, Assign, Commit, Mark, Write
from assignor.protocol.acks import Release, Taken

OPTIONS = json.loads(sys.argv[1])
LOG = os.open(OPTIONS["log"], os.O_WRONLY | os.O_APPEND)


def note(what: str, **more: Any) -> None:
    line = {"at": time.monotonic(), "who": OPTIONS["who"], "what": what, **more}
    os.write(LOG, (json.dumps(line) + "\n").encode())


def numbers(partitions: list[TopicPartition]) -> list[int]:
    return [partition.partition for partition in partitions]


class Fragile(Follower):
    """Hurts itself once, just before an action that belongs to the chosen point."""

    def _carry_out_next(self) -> None:
        point, _, number = OPTIONS.get("hurt", "").partition(":")
        if point and self._is_at(point, self._todo[0]):
            OPTIONS.pop("hurt")
            note("hurt")
            os.kill(os.getpid(), getattr(signal, f"SIG{number}"))
        super()._carry_out_next()

    def _is_at(self, point: str, action: Action) -> bool:
        if isinstance(action, Write):
            return point == {Release: "committed", Taken: "taken"}.get(type(action.ack))
        stopping, checking = (bool(self.state.marked(mark)) for mark in (Mark.STOPPING, Mark.CHECK))
        if isinstance(action, Commit):
            return (point == "stopped" and stopping) or (point == "offered" and checking)
        return isinstance(action, Assign) and point == "stopping" and stopping


def main() -> None:
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    config = {
        "bootstrap.servers": OPTIONS["bootstrap"],
        "group.id": OPTIONS["group"],
        "client.id": OPTIONS["who"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 3000,
        "heartbeat.interval.ms": 300,
        "log_level": 2,
        **OPTIONS.get("config", {}),
    }
    committed_at = time.monotonic()

    def gained(partitions: list[TopicPartition]) -> None:
        note("gained", places=numbers(partitions), generation=follower.state.generation)

    def revoked(partitions: list[TopicPartition]) -> None:
        # `poll` was called again, so all that it returned is finished. A zombie's commit is refused.
        with contextlib.suppress(KafkaException):
            follower.commit(asynchronous=False)
        note("revoked", places=numbers(partitions))

    def lost(partitions: list[TopicPartition]) -> None:
        note("lost", places=numbers(partitions))

    with Fragile(
        config,
        [OPTIONS["topic"]],
        on_gained=gained,
        on_revoked=revoked,
        on_lost=lost,
        control_topic=OPTIONS["control"],
        acks_topic=OPTIONS["acks"],
    ) as follower:
        joined = ("", -1)
        while not end.is_set():
            message = follower.poll(0.2)
            state = follower.state
            if state.settled and (state.member, state.generation) != joined:
                joined = (state.member, state.generation)
                places = sorted(partition for _, partition in state.base)
                note("joined", places=places, member=state.member, generation=state.generation)
            if message is None or message.error() is not None:
                continue
            note("record", place=message.partition(), offset=message.offset())
            if time.monotonic() - committed_at > 0.3:
                committed_at = time.monotonic()
                follower.commit()


main()
