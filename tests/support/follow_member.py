"""One consumer process of a `Crew`: python -m tests.support.follow_member '{"who":"a", …}'.

With `hurt` it hurts itself at a state of the hand-over: "stopped:KILL", "offered:STOP". SIGUSR1 makes it subscribe
again, which gives a member that does not lead the same generation twice; with `forget` its tokens are gone then.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from assignor.clients import follower_state_rules
from assignor.clients.confluent import Follower
from assignor.clients.follower_state import Action, Assign, Commit, FollowerState, Mark, Place, Token, Write
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


def forget(_: FollowerState, base: frozenset[Place]) -> Mapping[Place, Token]:
    return {place: Token(mark=Mark.HELD) for place in base}


def note_joined(follower: Follower) -> None:
    state = follower.state
    if state.settled:
        places = sorted(partition for _, partition in state.base)
        note("joined", places=places, member=state.member, generation=state.generation)


class User:
    """What a user of a follower does: processes, and commits now and then."""

    def __init__(self) -> None:
        self.end, self.again = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.end.set())
        signal.signal(signal.SIGUSR1, lambda *_: self.again.set())
        self.follower = Fragile(
            {
                "bootstrap.servers": OPTIONS["bootstrap"],
                "group.id": OPTIONS["group"],
                "client.id": OPTIONS["who"],
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 3000,
                "heartbeat.interval.ms": 300,
                "log_level": 2,
                **OPTIONS.get("config", {}),
            },
            [OPTIONS["topic"]],
            on_gained=lambda partitions: note("gained", places=numbers(partitions)),
            on_revoked=self.revoked,
            on_lost=lambda partitions: note("lost", places=numbers(partitions)),
            control_topic=OPTIONS["control"],
            acks_topic=OPTIONS["acks"],
        )

    def revoked(self, partitions: list[TopicPartition]) -> None:
        # `poll` was called again, so all that it returned is finished. A zombie's commit is refused.
        with contextlib.suppress(KafkaException):
            self.follower.commit(asynchronous=False)
        note("revoked", places=numbers(partitions))

    def run(self) -> None:
        joined, committed_s, noted_s = ("", -1), 0.0, 0.0
        while not self.end.is_set():
            if self.again.is_set():
                self.again.clear()
                self.follower._subscribe()
            message = self.follower.poll(0.2)
            now_s, state = time.monotonic(), self.follower.state
            # Said again, for whoever does not know whether this process goes on after it was stopped.
            if (state.member, state.generation) != joined or now_s - noted_s > 1.0:
                joined, noted_s = (state.member, state.generation), now_s
                note_joined(self.follower)
            if message is None or message.error() is not None:
                continue
            note("record", place=message.partition(), offset=message.offset())
            if now_s - committed_s > 0.3:
                committed_s = now_s
                self.follower.commit()


if "forget" in OPTIONS:
    follower_state_rules.restored_tokens = forget
user = User()
with user.follower:
    user.run()
