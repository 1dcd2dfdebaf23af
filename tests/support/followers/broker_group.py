"""A group of KIP-848 whose broker has lagwise's assignor: members of two clients, plans, and pokes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription, MemberAssignment

from assignor.protocol import control
from assignor.protocol.control import ControlRecord
from tests.support.brokers.broker import admin_client
from tests.support.followers.group_members import PartitionKey, ThreadedMember
from tests.support.followers.plans import plan
from tests.support.java.java_apps import Owned
from tests.support.java.java_members import JavaHost, JavaMember
from tests.support.waiting import wait_until

_POLL_S = 0.1
STARTING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)


class ConfluentMember(ThreadedMember):
    """A member with confluent-kafka; more properties have underscores for dots."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], **more: Any) -> None:
        self._topics = topics
        self._config = {
            **_common(bootstrap, group),
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        super().__init__()

    def _run(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe(self._topics, on_assign=self._gained, on_revoke=self._lost)
        while not self._stopping.is_set():
            message = consumer.poll(_POLL_S)
            if message is not None and not message.error():
                self.read.add(
                    (str(message.topic()), int(message.partition() or 0), int(message.offset() or 0))
                )
            owned = [(one.topic, one.partition) for one in consumer.assignment()]
            # The client does not show its epoch.
            self._see(generation=0, member_id=consumer.memberid() or "", owned=owned)
        consumer.close()

    def _gained(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._begin([(one.topic, one.partition) for one in partitions])

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._end([(one.topic, one.partition) for one in partitions])


def java_member(host: JavaHost, bootstrap: str, group: str, topics: list[str], **more: str) -> JavaMember:
    """The same with Kafka's own client; `JavaHost` says of which release."""
    named = {name.replace("_", "."): value for name, value in more.items()}
    return JavaMember(host, {**_common(bootstrap, group), **named}, topics, following=False)


def _common(bootstrap: str, group: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "group.remote.assignor": "lagwise",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }


@dataclass(frozen=True, kw_only=True)
class BrokerGroup:
    """One group, as its broker sees it, and its plans."""

    bootstrap: str
    name: str
    control: str

    def owned(self) -> Owned:
        """What the members have by their ids; nothing while they reconcile, or their broker starts."""
        try:
            described = self._described()
        except KafkaException as error:
            if error.args[0].code() not in STARTING:
                raise
            return {}
        have = {one.member_id: _places(one.assignment) for one in described.members}
        wanted = {one.member_id: _places(one.target_assignment) for one in described.members}
        return have if described.state.name == "STABLE" and have == wanted else {}

    def settled(self, places: list[PartitionKey], *, members: int) -> Owned:
        """What that many members have, once every partition has one of them."""
        seen: Owned = {}

        def whole() -> bool:
            nonlocal seen
            seen = self.owned()
            return len(seen) == members and sorted(p for one in seen.values() for p in one) == sorted(places)

        wait_until(whole, what=f"{members} members of {self.name} with all partitions", every_s=0.2)
        return seen

    def plan(self, base: Owned, target: Owned, *, epoch: int, cluster: str) -> ControlRecord:
        """A plan for it; `publish` says that it is for a group of this kind."""
        return plan(
            _by_topic(base), _by_topic(target), epoch=epoch, group=self.name, cluster=cluster, generation=4
        )

    def publish(self, record: ControlRecord, **more: Any) -> None:
        """Put a plan onto the control topic; fields by name go before its own."""
        value = {**json.loads(control.encode(record)), "group_protocol": "consumer", **more}
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        key = control.encode_key(record.cluster, record.group)
        producer.produce(
            self.control, key=key, value=json.dumps(value), headers=control.headers(record.epoch)
        )
        assert producer.flush(30) == 0

    @contextmanager
    def poke(self) -> Iterator[None]:
        """Make the broker assign, twice: a member that reads nothing joins, and leaves at the end of the block."""
        ghost = Consumer({**_common(self.bootstrap, self.name), "log_level": 0})
        before = len(self._members())
        # A regular expression, so that no topic is asked for.
        ghost.subscribe(["^lagwise-nothing-is-called-so$"])
        try:
            wait_until(lambda: ghost.poll(_POLL_S) or len(self._members()) > before, what="the ghost's join")
            yield
        finally:
            ghost.close()
        wait_until(lambda: len(self._members()) == before, what="the ghost's end")

    def apply(self, target: Owned) -> None:
        """Poke until the members have the target of a plan that was published just now."""

        def applied() -> bool:
            with self.poke():
                pass
            wait_until(self.owned, what="the group at rest")
            return self.owned() == target

        wait_until(applied, what="the target of the plan", every_s=0.5)

    def _described(self) -> ConsumerGroupDescription:
        # Without a name for it the client would be gone before the answer comes.
        admin = admin_client(self.bootstrap)
        return admin.describe_consumer_groups([self.name])[self.name].result(10)

    def _members(self) -> list[str]:
        described = self._described()
        return [one.member_id for one in described.members]


def _places(assigned: MemberAssignment | None) -> frozenset[PartitionKey]:
    return frozenset((p.topic, p.partition) for p in (assigned.topic_partitions if assigned else ()))


def _by_topic(owned: Owned) -> dict[str, dict[str, tuple[int, ...]]]:
    return {
        member: {t: tuple(sorted(n for topic, n in places if topic == t)) for t in {t for t, _ in places}}
        for member, places in owned.items()
    }
