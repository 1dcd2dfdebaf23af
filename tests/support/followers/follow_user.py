"""What users of a follower do: one processes as it polls, one processes in other threads."""

import contextlib
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Message, TopicPartition

from assignor.clients.confluent import Follower
from tests.support.followers.follow_fragile import Fragile
from tests.support.followers.follow_log import OPTIONS, note, numbers
from tests.support.followers.follow_plain import Plain

_COMMIT_EVERY_S = 0.3


class User:
    """Processes each record when it is polled, and commits now and then.

    SIGTERM ends it. SIGUSR1 makes it subscribe again, which gives a member that does not lead the same generation
    twice. SIGUSR2 makes it stop itself at the next commit of a hand-over.
    """

    def __init__(self, kind: type[Follower] | type[Plain] = Fragile) -> None:
        self.end, self.again, self.arm = threading.Event(), threading.Event(), threading.Event()
        for number, event in (
            (signal.SIGTERM, self.end),
            (signal.SIGUSR1, self.again),
            (signal.SIGUSR2, self.arm),
        ):
            signal.signal(number, lambda *_, event=event: event.set())
        self.follower: Any = kind(
            _config(),
            [OPTIONS["topic"]],
            on_gained=self.gained,
            on_revoked=self.revoked,
            on_lost=self.lost,
            control_topic=OPTIONS["control"],
            acks_topic=OPTIONS["acks"],
            **OPTIONS.get("follower", {}),
        )

    def run(self) -> None:
        """Until it is told to end."""
        joined, committed_s, noted_s = ("", -1), 0.0, 0.0
        while not self.end.is_set():
            self.obey()
            message = self.follower.poll(0.2)
            now_s, state = time.monotonic(), self.follower.state
            # Said again, for whoever does not know whether this process goes on after it was stopped.
            if (state.member, state.generation) != joined or now_s - noted_s > 1.0:
                joined, noted_s = (state.member, state.generation), now_s
                self.note_joined()
            if message is None or message.error() is not None:
                continue
            self.process(message)
            if now_s - committed_s > _COMMIT_EVERY_S:
                committed_s = now_s
                self.commit()

    def process(self, message: Message) -> None:
        note("record", place=message.partition(), offset=message.offset())

    def commit(self) -> None:
        self.follower.commit()

    def gained(self, partitions: list[TopicPartition]) -> None:
        note("gained", places=numbers(partitions), generation=self.follower.state.generation)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        # `poll` was called again, so all that it returned is finished.
        with contextlib.suppress(KafkaException):
            self.follower.commit(asynchronous="patient" in OPTIONS)
        note("revoked", places=numbers(partitions))

    def lost(self, partitions: list[TopicPartition]) -> None:
        note("lost", places=numbers(partitions))

    def obey(self) -> None:
        if self.again.is_set():
            self.again.clear()
            self.follower._subscribe()
        if self.arm.is_set():
            self.arm.clear()
            self.follower.arm("commit:STOP")

    def note_joined(self) -> None:
        state = self.follower.state
        if state.settled:
            places = sorted(partition for _, partition in state.base)
            note("joined", places=places, member=state.member, generation=state.generation)


def _config() -> dict[str, Any]:
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
    # Under KIP-848 the broker sets what a client sets otherwise.
    return {name: value for name, value in config.items() if value is not None}


class BusyUser(User):
    """Is busy with one record, and does not poll, as long as a file is there."""

    def process(self, message: Message) -> None:
        busy = Path(OPTIONS["busy"])
        if busy.exists():
            note("busy")
        while busy.exists():
            time.sleep(0.05)
        super().process(message)


class PoolUser(User):
    """Processes in a pool; the thread that polls commits what is done without a gap, and waits before it gives up."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=4)
        self._random = Random(OPTIONS["who"])
        self._in_hand: dict[int, list[tuple[int, Future[None]]]] = {}
        super().__init__()

    def process(self, message: Message) -> None:
        place, offset = int(message.partition() or 0), int(message.offset() or 0)
        work = self._pool.submit(self._work, place, offset, self._random.uniform(0, 0.02))
        self._in_hand.setdefault(place, []).append((offset, work))

    def _work(self, place: int, offset: int, takes_s: float) -> None:
        threading.Event().wait(takes_s)
        note("record", place=place, offset=offset)

    def commit(self) -> None:
        done = self._take_done()
        if done:
            self.follower.commit(offsets=done)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        going = numbers(partitions)
        wait([work for place in going for _, work in self._in_hand.get(place, ())])
        done = self._take_done()
        if done:
            with contextlib.suppress(KafkaException):
                self.follower.commit(offsets=done, asynchronous=False)
        note("revoked", places=going)

    def lost(self, partitions: list[TopicPartition]) -> None:
        for place in numbers(partitions):
            self._in_hand.pop(place, None)
        super().lost(partitions)

    def _take_done(self) -> list[TopicPartition]:
        """Next offset of each partition behind what is done, which is taken out of hand."""
        done = []
        for place, works in self._in_hand.items():
            next_offset = None
            while works and works[0][1].done():
                next_offset = works.pop(0)[0] + 1
            if next_offset is not None:
                done.append(TopicPartition(OPTIONS["topic"], place, next_offset))
        return done
