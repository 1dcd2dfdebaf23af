"""Whatever callbacks the client runs in one call: a hand-over is committed in the generation it belongs to, or never."""

from random import Random
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from assignor.clients.confluent import Follower
from assignor.clients.confluent import follower as confluent
from assignor.protocol.acks import Follows, Release
from tests.support.followers.follow_fakes import FakeConsumer, FakeTopics
from tests.support.followers.follow_plans import CLUSTER, GROUP, plan

CALLS = 30
PARTITIONS = 4


class Coordinated(FakeConsumer):
    """Calls back in an order that Kafka allows, several times in one call; a commit counts in a generation only.

    Attributes:
        late: Commits that were sent between two generations: they wait for the next, and are accepted there.
        sent: Partition, offset and generation of all others.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.joined = False
        self.late: list[dict[int, int]] = []
        self.sent: set[tuple[int, int, int]] = set()

    def call_back(self, random: Random) -> None:
        """Choose what the next call runs."""
        joined = self.joined
        self.answers_commits = random.random() < 0.7
        for _ in range(random.randrange(4)):
            what = random.choice(["on_revoke", "on_lost"]) if joined else "on_assign"
            self.will(what, sorted(random.sample(range(PARTITIONS), 2)) if what == "on_assign" else [])
            joined = what == "on_assign"

    def consume(self, number: int, timeout_s: float) -> list[Any]:
        for what, partitions in self._drained():
            if what == "on_assign":
                # A member that does not lead may be assigned the same generation twice.
                self.generation += sum(partitions) % 3 > 0
            self.joined = what == "on_assign"
            self._listeners[what](self, [TopicPartition("t", p) for p in partitions])
        return super().consume(number, timeout_s)

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        if not self.joined:
            self.late.append({p.partition: p.offset for p in offsets})
        self.sent |= {(p.partition, p.offset, self.generation) for p in offsets if self.joined}
        return super().commit(offsets=offsets, asynchronous=asynchronous)

    def _drained(self) -> list[tuple[str, Any]]:
        drained, self._next = self._next, []
        return drained


def hear(follower: Follower, random: Random) -> None:
    """Acknowledgements and a plan, of this generation or the next."""
    topics: Any = follower._side
    consumer: Any = follower._consumer
    generation = consumer.generation + random.randrange(2)
    head: dict[str, Any] = {
        "cluster": CLUSTER,
        "group": GROUP,
        "generation": generation,
        "epoch": 1 + random.randrange(3),
        "member": "b",
        "at_ms": 0,
    }
    place = {"topic": "t", "partition": random.randrange(PARTITIONS)}
    release = Release(**head, **place, to="a", hop=random.randrange(1, 4), offset=random.randrange(90))
    topics.incoming += random.choice([[], [release], [Follows(**head)], [release, Follows(**head)]])
    base = {"a": sorted(p for _, p in follower.state.base), "b": []}
    target = {"a": base["a"][1:], "b": base["a"][:1]}
    topics.offered = plan(base, target, epoch=head["epoch"], generation=generation)


@pytest.fixture(autouse=True, scope="module")
def fakes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confluent, "Consumer", Coordinated)
        patch.setattr(confluent, "FollowTopics", FakeTopics)
        yield


@given(st.integers(0, 2**32))
def test_no_hand_over_is_committed_between_two_generations(seed: int) -> None:
    random = Random(seed)
    follower = Follower({"group.id": GROUP, "enable.auto.commit": False}, ["t"])
    consumer: Any = follower._consumer

    for _ in range(CALLS):
        hear(follower, random)
        consumer.call_back(random)
        follower._steering._looked_s = 0.0
        follower.poll(0)

    topics: Any = follower._side
    assert consumer.late == []
    for ack in topics.written:
        if isinstance(ack, Release):
            assert (ack.partition, ack.offset, ack.generation) in consumer.sent
