"""A confluent-kafka follower of stand-ins: member a of generation 1, and a plan that gives partition 1 to member b."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_INVALID, TopicPartition

from assignor.clients.confluent import Follower
from assignor.protocol.acks import Release
from assignor.protocol.marks import HandOverMark, with_mark
from tests.support.followers.follow_plans import CLUSTER, GROUP, plan

BASE = {"a": [0, 1], "b": [2]}
GIVES_1 = plan(BASE, {"a": [0], "b": [1, 2]}, epoch=5, generation=1)
HEAD: dict[str, Any] = {
    "cluster": CLUSTER,
    "group": GROUP,
    "generation": 1,
    "epoch": 5,
    "member": "b",
    "at_ms": 0,
}


class Setup:
    """A follower of stand-ins, and what its user was told."""

    def __init__(self, **config: Any) -> None:
        self.told: list[tuple[str, list[int]]] = []
        self.on_revoked: Callable[[], object] = lambda: None
        self.follower = Follower(
            {"group.id": GROUP, "enable.auto.commit": False, **config},
            ["t"],
            on_gained=lambda partitions: self.note("gained", partitions),
            on_revoked=self.revoked,
            on_lost=lambda partitions: self.note("lost", partitions),
        )
        self.consumer: Any = self.follower._consumer
        self.topics: Any = self.follower._side

    def note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.told.append((what, [partition.partition for partition in partitions]))

    def revoked(self, partitions: list[TopicPartition]) -> None:
        self.note("revoked", partitions)
        self.on_revoked()

    def poll(self) -> Any:
        self.follower._steering._looked_s = 0.0
        # However fast the test is, this poll looks at everything.
        delivered = self.follower._delivered
        delivered.calm_until_s = min(delivered.calm_until_s, 1e-9)
        return self.follower.poll(0)

    def given(self, partition: int, *, hop: int = 1, offset: int = 70, metadata: str = "") -> None:
        """A later plan gives it to this member, and its old owner has committed and released it."""
        base, epoch = {"a": [0, 1], "b": [2]}, HEAD["epoch"] + 1
        target = {"a": sorted({0, 1, partition}), "b": sorted({2} - {partition})}
        self.topics.offered = plan(base, target, epoch=epoch, generation=HEAD["generation"])
        self.poll()
        mark = HandOverMark(kind="release", generation=HEAD["generation"], epoch=epoch, hop=hop)
        self.consumer.stored[partition] = offset
        self.consumer.metadata[partition] = with_mark(metadata, mark)
        release = {"to": "a", "topic": "t", "partition": partition, "hop": hop, "offset": offset}
        self.topics.incoming.append(Release(**{**HEAD, "epoch": epoch}, **release))

    def calls(self) -> list[tuple[str, Any]]:
        made, self.consumer.calls[:] = list(self.consumer.calls), []
        return made


def at(partition: int, offset: int = OFFSET_INVALID) -> TopicPartition:
    """A partition of the setup's topic."""
    return TopicPartition("t", partition, offset)


def offsets(partitions: list[TopicPartition]) -> dict[int, int]:
    """By number."""
    return {partition.partition: partition.offset for partition in partitions}


def release_of(setup: Setup) -> list[int]:
    """Offsets at which it has released something, oldest first."""
    return [ack.offset for ack in setup.topics.written if isinstance(ack, Release)]
