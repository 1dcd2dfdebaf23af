"""The topics of one test of the plug-ins, and plans for its group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Producer

from assignor.protocol import control
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord
from tests.support.brokers.acks_topic import read_acks
from tests.support.brokers.broker import create_topics, produce
from tests.support.followers.group_members import PartitionKey
from tests.support.followers.plans import plan
from tests.support.followers.plugin_members import AiokafkaMember, KafkaPythonMember

SomeAck = TypeVar("SomeAck", bound=AnyAck)

PARTITIONS = 6
RECORDS = 20
"""In each partition before the test begins."""


@dataclass(frozen=True, kw_only=True)
class PluginSetup:
    """Topics of one test, named for it."""

    bootstrap: str
    name: str

    @classmethod
    def made(cls, bootstrap: str, name: str) -> "PluginSetup":
        """With its topics, and records in each partition."""
        setup = cls(bootstrap=bootstrap, name=name)
        create_topics(bootstrap, {setup.name: PARTITIONS, setup.control: 1, setup.acks: 1})
        produce(bootstrap, setup.name, dict.fromkeys(range(PARTITIONS), RECORDS))
        return setup

    @property
    def control(self) -> str:
        return f"{self.name}-control"

    @property
    def acks(self) -> str:
        return f"{self.name}-acks"

    @property
    def places(self) -> list[PartitionKey]:
        return [(self.name, number) for number in range(PARTITIONS)]

    def follower(self, **more: Any) -> KafkaPythonMember:
        topics = {"control_topic": self.control, "acks_topic": self.acks}
        return KafkaPythonMember(self.bootstrap, self.name, [self.name], **topics, **more)

    def aiokafka_follower(self, **more: Any) -> AiokafkaMember:
        topics = {"control_topic": self.control, "acks_topic": self.acks}
        return AiokafkaMember(self.bootstrap, self.name, [self.name], **topics, **more)

    def plan(
        self,
        base: Mapping[str, frozenset[PartitionKey]],
        target: Mapping[str, frozenset[PartitionKey]],
        **more: Any,
    ) -> ControlRecord:
        return plan(_by_topic(base), _by_topic(target), group=self.name, **more)

    def publish(self, record: ControlRecord) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        producer.produce(
            self.control,
            key=control.encode_key(record.cluster, record.group),
            value=control.encode(record),
            headers=control.headers(record.epoch),
        )
        assert producer.flush(30) == 0

    def said(self, kind: type[SomeAck]) -> list[SomeAck]:
        return [ack for ack in read_acks(self.bootstrap, self.acks) if isinstance(ack, kind)]


def all_to_one(base: Mapping[str, frozenset[PartitionKey]]) -> dict[str, frozenset[PartitionKey]]:
    """A target that no even strategy gives: the last member has nothing, the first has its share too; or the reverse."""
    first, *_, last = sorted(base)
    if not base[last]:
        # A plan that moves nothing is nothing to apply.
        return {**base, first: frozenset(), last: base[first]}
    return {**base, first: base[first] | base[last], last: frozenset()}


def _by_topic(owned: Mapping[str, frozenset[PartitionKey]]) -> dict[str, dict[str, tuple[int, ...]]]:
    return {
        member: {t: tuple(sorted(n for topic, n in places if topic == t)) for t in {t for t, _ in places}}
        for member, places in owned.items()
    }
