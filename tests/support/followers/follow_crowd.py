"""Many followers of one group, each in a thread of one process, and how long they take to apply a plan."""

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TypeAlias

from confluent_kafka import Producer, TopicPartition

from assignor.clients.confluent import Follower
from assignor.clients.follower.state import FollowerState
from assignor.protocol import control
from assignor.protocol.acks import Applied
from tests.support.brokers.acks_topic import read_acks
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.brokers.flow import Flow
from tests.support.followers.follow_plans import key_of, plan
from tests.support.waiting import wait_until

SESSION_MS = 10_000
_COMMIT_EVERY_S = 1.0
_RECORDS_PER_S = 1.0

Held: TypeAlias = Mapping[str, Sequence[int]]
"""Partitions by member id."""


class Crowd:
    """A context manager; in it the followers run, and a record a second flows to every partition.

    Attributes:
        losses: How often a member has lost its membership, by a session timeout above all.
    """

    def __init__(self, bootstrap: str, name: str, *, members: int, partitions: int) -> None:
        self._bootstrap, self._partitions = bootstrap, partitions
        self._group, self._topic = f"{name}-group", f"{name}-topic"
        self._control, self._acks = f"{name}-control", f"{name}-acks"
        create_topics(bootstrap, {self._topic: partitions, self._control: 1, self._acks: 1})
        self._cluster = str(admin_client(bootstrap).list_topics(timeout=10).cluster_id)
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._flow = Flow(bootstrap, self._topic, partitions=partitions, records_per_s=_RECORDS_PER_S)
        self._end = threading.Event()
        self._states: dict[int, FollowerState] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(number,), daemon=True) for number in range(members)
        ]
        self._epoch = 0
        self.losses = 0

    def __enter__(self) -> "Crowd":
        for thread in [self._flow, *self._threads]:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flow.end()
        self._end.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def generation(self) -> int:
        """The newest that any member knows."""
        return max((state.generation for state in self._states.values()), default=-1)

    def base(self) -> Held:
        """What Kafka has assigned, once it is all assigned in one generation."""

        def settled() -> bool:
            states = list(self._states.values())
            return (
                len(states) == len(self._threads)
                and {state.generation for state in states} == {self.generation}
                and all(state.settled for state in states)
                and sum(len(state.base) for state in states) == self._partitions
            )

        wait_until(settled, what=f"{len(self._threads)} members in one generation", within_s=120)
        return {state.member: _numbers(state.base) for state in self._states.values()}

    def held(self) -> Held:
        """What the members read."""
        return {state.member: _numbers(state.held) for state in self._states.values()}

    def apply(self, base: Held, target: Held, *, within_s: float = 60.0) -> float:
        """Publish a plan; seconds until every member has applied it."""
        self._epoch += 1
        record = plan(
            base,
            target,
            epoch=self._epoch,
            generation=self.generation,
            topic=self._topic,
            cluster=self._cluster,
            group=self._group,
        )
        published_ms = time.time_ns() // 1_000_000
        self._producer.produce(
            self._control,
            key=key_of(record),
            value=control.encode(record),
            headers=control.headers(record.epoch),
        )
        assert self._producer.flush(10) == 0
        at_ms: dict[str, int] = {}

        def applied() -> bool:
            said = read_acks(self._bootstrap, self._acks) if self._is_applied() else []
            at_ms.update(
                {
                    ack.member: ack.at_ms
                    for ack in said
                    if isinstance(ack, Applied) and ack.epoch == self._epoch
                }
            )
            return len(at_ms) == len(self._threads)

        wait_until(applied, what=f"plan {self._epoch} applied by all", within_s=within_s)
        return (max(at_ms.values()) - published_ms) / 1000

    def _is_applied(self) -> bool:
        states = self._states.values()
        return all(state.applied and state.plan and state.plan.epoch == self._epoch for state in states)

    def _follow(self, number: int) -> None:
        config = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self._group,
            "client.id": f"m{number}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "queued.max.messages.kbytes": 1024,
            "log_level": 2,
        }
        topics = {"control_topic": self._control, "acks_topic": self._acks}
        committed_s = 0.0
        with Follower(config, [self._topic], on_lost=self._note_loss, **topics) as follower:
            while not self._end.is_set():
                follower.poll(0.2)
                self._states[number] = follower.state
                if follower.state.settled and time.monotonic() - committed_s > _COMMIT_EVERY_S:
                    committed_s = time.monotonic()
                    follower.commit()

    def _note_loss(self, _partitions: list[TopicPartition]) -> None:
        self.losses += 1


def _numbers(places: frozenset[tuple[str, int]]) -> list[int]:
    return sorted(number for _, number in places)


def few_moved(base: Held, *, percent: int) -> dict[str, list[int]]:
    """So many percent of the partitions go from the first members to the last ones, as lag would have it."""
    names = sorted(base)
    left = percent * sum(map(len, base.values())) // 100
    target = {name: list(base[name]) for name in names}
    for old_owner, new_owner in zip(names, reversed(names), strict=True):
        given = min(left, len(base[old_owner]) // 2)
        target[new_owner] = sorted(target[new_owner] + target[old_owner][:given])
        target[old_owner] = target[old_owner][given:]
        left -= given
    return target


def all_moved(base: Held) -> dict[str, list[int]]:
    """Every partition goes to the next member."""
    names = sorted(base)
    return {name: list(base[names[number - 1]]) for number, name in enumerate(names)}
