"""One group's process: `python -m` this module with `BOOTSTRAP SCENARIO` consumes until its stdin closes.

The members of a group are threads of one process. Each has a client with sockets, heartbeats and a member id
of its own, and librdkafka runs those outside Python: to the broker, and to other members that follow, they are
as separate as processes are; a process each would only take the memory of twenty interpreters. Groups are
processes, so that a stalled one stalls nobody else, and can be stopped by hand to see its lag grow.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from assignor.clients.confluent import Follower, NotOwnedError
from pipeline.operate.demo.processes.child import stop_with_parent
from pipeline.operate.demo.scenario import CLUSTER, Group, Scenario
from pipeline.planning import broker_reasons

_ROUND_S = 0.2
_CATCHES_UP_S = 1.0


class Following:
    """A member that follows plans; it commits as often as the clients of other members do."""

    def __init__(self, config: dict[str, Any], group: Group) -> None:
        self._follower = Follower(config, group.topics, cluster=CLUSTER, on_revoked=self._on_revoked)
        self._commit_every_s = group.commit_s
        self._commit_at_s = 0.0

    def consume(self, num_messages: int, timeout: float, /) -> object:
        """Process at most this many waiting records, and commit in intervals."""
        self._follower.consume(num_messages, timeout)
        now_s = time.monotonic()
        if now_s >= self._commit_at_s:
            self._commit_at_s = now_s + self._commit_every_s
            with suppress(NotOwnedError):
                self._follower.commit()
        return None

    def close(self) -> None:
        """Leave the group."""
        self._follower.close()

    def _on_revoked(self, _partitions: object) -> None:
        # Refused if the group has rebalanced without this member; the new owners start at the previous commit.
        with suppress(NotOwnedError, KafkaException):
            self._follower.commit(asynchronous=False)


class Pace:
    """Number of records for which a member of some speed has time."""

    def __init__(self, speed: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._clock = clock
        self._last_s = clock()
        self._left = 0.0

    def due(self) -> int:
        """Records since the previous call; unused time is lost, except for a second of delays of a busy machine."""
        now_s = self._clock()
        due = self._left + self._speed * min(now_s - self._last_s, _CATCHES_UP_S)
        self._last_s, self._left = now_s, due % 1
        return int(due)


def main(bootstrap: str, scenario: str) -> None:
    """Run all members of the scenario's only group."""
    played = Scenario.from_json(scenario)
    (group,) = played.groups
    stop = stop_with_parent()
    with ThreadPoolExecutor(len(group.speeds)) as pool:
        members = [
            pool.submit(_consume, bootstrap, played, number, stop) for number in range(len(group.speeds))
        ]
    for member in members:
        member.result()


def _consume(bootstrap: str, scenario: Scenario, number: int, stop: Event) -> None:
    (group,) = scenario.groups
    member = _member(bootstrap, scenario, group, number)
    pace = Pace(group.speeds[number])
    try:
        while not stop.wait(_ROUND_S):
            member.consume(max(1, pace.due()), 0)
    finally:
        member.close()


def _member(bootstrap: str, scenario: Scenario, group: Group, number: int) -> Following | Consumer:
    config = properties(bootstrap, group, number)
    if _follows_itself(group):
        return Following(config, group)
    consumer = Consumer(config)
    if group.subscribes:
        consumer.subscribe(list(group.topics))
    else:
        taken = [topic for topic in scenario.topics if topic.name in group.topics]
        consumer.assign([TopicPartition(topic.name, p) for topic in taken for p in range(topic.partitions)])
    return consumer


def properties(bootstrap: str, group: Group, number: int) -> dict[str, Any]:
    """Client properties of member `number` of the group."""
    name = f"{group.group_id}-{number + 1}"
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group.group_id,
        "client.id": name,
        "auto.offset.reset": "earliest",
        # Prefetched records only take memory here.
        "queued.min.messages": 1000,
        **(
            {"enable.auto.commit": False}
            if _follows_itself(group)
            else {"auto.commit.interval.ms": round(group.commit_s * 1000)}
        ),
        **({"group.instance.id": name} if group.is_static else {}),
        # Its control group asks for none, and gets the broker's first: Kafka's own.
        **({"group.remote.assignor": broker_reasons.ASSIGNOR} if group.follows and group.is_kip848 else {}),
        **group.properties,
    }


def _follows_itself(group: Group) -> bool:
    return group.follows and not group.is_kip848


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
