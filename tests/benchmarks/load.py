"""Load with the size of a real cluster and no clients: groups, their members, and commits round by round.

Every group subscribes to the same topics, so the table has groups x partitions rows while the brokers are asked
for each partition once. A group has ten members; the first of them owns half of the partitions, as an assignor
that counts topics and not work would have it.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Producer

from assignor.protocol.kafka.consumer import Assignment, Subscription, encode_assignment, encode_subscription
from assignor.protocol.kafka.group_metadata import GroupMember, GroupMetadata, encode_group_metadata
from assignor.protocol.kafka.offsets import (
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_offset_commit_value,
)
from tests.support.brokers.broker import create_topics
from tests.support.brokers.inject import RawRecord, commit_record, inject, injector, offsets_partition, send

_COMMITS_EVERY_S = 10.0
_MEMBERS = 10
_RECORDS_A_ROUND = 4
_GENERATION = 3
_SESSION_MS = 3_600_000
"""Nobody sends heartbeats, and a coordinator that has read the groups waits for some."""


@dataclass(slots=True, kw_only=True)
class Load:
    """Traffic for one broker; each `advance` is one round."""

    bootstrap: str
    groups: int
    topics: int
    partitions: int
    """Per topic."""
    offsets_partitions: int
    committed: float = 0.5
    """Share of the records that commits name: by default lag grows, and no commit is beyond the log end."""
    round: int = 0
    _keys: list[RawRecord] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows of `partition_lag`."""
        return self.groups * self.asked

    @property
    def asked(self) -> int:
        """Partitions that the brokers are asked for."""
        return self.topics * self.partitions

    def prepare(self) -> None:
        """Topics with records, stable groups, and a commit of every group for every partition."""
        self.make_groups()
        inject(self.bootstrap, self._commits(self._keys))

    def make_groups(self) -> None:
        """Topics with records, and stable groups that have committed nothing."""
        create_topics(self.bootstrap, dict.fromkeys(self._topic_names(), self.partitions))
        self._produce()
        names = [f"bench-group-{number:04d}" for number in range(self.groups)]
        inject(self.bootstrap, (self._group(name) for name in names))
        self._keys = [
            RawRecord(
                offsets_partition(name, self.offsets_partitions),
                commit_record(name, topic, number, None).key,
                None,
            )
            for name in names
            for topic in self._topic_names()
            for number in range(self.partitions)
        ]

    def commit_all(self) -> int:
        """A new commit for every row.

        Returns:
            Number of commits.
        """
        self.round += 1
        return inject(self.bootstrap, self._commits(self._keys))

    def advance(self, *, one_in: int = 5) -> int:
        """A few more records in every partition, and a new commit for one row in so many.

        Returns:
            Number of commits.
        """
        self._produce()
        return inject(self.bootstrap, self.next_commits(one_in=one_in))

    def next_commits(self, *, one_in: int = 5) -> Iterator[RawRecord]:
        """A new commit for one row in so many."""
        self.round += 1
        return self._commits(self._keys[self.round % one_in :: one_in])

    def _topic_names(self) -> list[str]:
        return [f"bench-topic-{number:02d}" for number in range(self.topics)]

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 50, "log_level": 0})
        for topic in self._topic_names():
            for number in range(self.partitions):
                for _ in range(_RECORDS_A_ROUND):
                    producer.produce(topic, value=b"x", partition=number)
            producer.poll(0)
        assert producer.flush(120) == 0

    def _commits(self, keys: list[RawRecord]) -> Iterator[RawRecord]:
        commit = OffsetCommitValue(
            committed_offset=int((self.round + 1) * _RECORDS_A_ROUND * self.committed),
            leader_epoch=0,
            commit_timestamp_ms=1_700_000_000_000 + 1000 * self.round,
        )
        value = encode_offset_commit_value(commit)
        return (record._replace(value=value) for record in keys)

    def _group(self, name: str) -> RawRecord:
        numbers = tuple(range(self.partitions))
        half = self.partitions // 2
        shares = [numbers[:half], *(numbers[half + at :: _MEMBERS - 1] for at in range(_MEMBERS - 1))]
        topics = self._topic_names()
        members = tuple(
            GroupMember(
                member_id=f"{name}-member-{at}",
                client_id=f"{name}-{at}",
                client_host=f"/10.0.0.{at}",
                rebalance_timeout_ms=300_000,
                session_timeout_ms=_SESSION_MS,
                subscription=encode_subscription(Subscription(topics=tuple(topics))),
                assignment=encode_assignment(Assignment(partitions=dict.fromkeys(topics, share))),
            )
            for at, share in enumerate(shares)
        )
        group = GroupMetadata(
            protocol_type="consumer",
            generation=_GENERATION,
            protocol="range",
            leader=members[0].member_id,
            state_timestamp_ms=1_700_000_000_000,
            members=members,
        )
        place = offsets_partition(name, self.offsets_partitions)
        return RawRecord(place, encode_group_metadata_key(name), encode_group_metadata(group))


@contextmanager
def traffic(load: Load) -> Iterator[None]:
    """A few records and commits now and then."""
    with _repeated(load.advance):
        yield


@contextmanager
def steady_traffic(load: Load) -> Iterator[None]:
    """The same by one producer that lasts: it asks the brokers for the same in each minute."""
    producer = injector(load.bootstrap)
    with _repeated(lambda: send(producer, load.next_commits())):
        yield


@contextmanager
def _repeated(advance: Callable[[], object]) -> Iterator[None]:
    is_over = threading.Event()

    def go() -> None:
        while not is_over.wait(_COMMITS_EVERY_S):
            advance()

    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(go)
        try:
            yield
        finally:
            is_over.set()
        # Traffic that has ended by itself is an error.
        running.result()
