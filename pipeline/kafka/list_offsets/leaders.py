"""One Kafka client, and the leader of each partition as far as it knows.

librdkafka asks for metadata of its own accord only every 15 minutes (`metadata.max.age.ms`). Until then a restarted
broker answers FENCED_LEADER_EPOCH and an added partition is unknown. A full listing on the same client renews
leaders and their epochs, so it follows any answer that suggests that they are out of date.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata

from pipeline.kafka.client import admin_of
from pipeline.kafka.positions import PartitionKey

T = TypeVar("T")

# librdkafka's default, after which it forgets metadata. Leaders are renewed well before.
_MAX_AGE_MS = 900_000
_RENEWALS_WITHIN_AGE = 3
_LEAST_S = 0.001
# By then its calls are settled; the thread that settles a client's last call must not destroy the client.
_RETIRED_FOR_S = 600.0


class Replication(NamedTuple):
    """Leader and replicas of a partition, from the metadata."""

    leader_broker: int | None
    """Broker id; None without a leader."""
    preferred_leader: int | None
    """The first of its replicas."""
    replicas: int
    in_sync_replicas: int


@final
class Leaders:
    """A client and the leaders that it knows.

    Attributes:
        listed_at: Time of the last request for leaders, answered or not; s of the monotonic clock.
        replication: By partition, as old as the leaders are.
        brokers: Number of live brokers; None before the first answer.
        silent: Leaders that did not answer the last request in time.
    """

    def __init__(
        self,
        make: Callable[[], AdminClient],
        topics: Sequence[str] = (),
        *,
        renew_after_s: float = _MAX_AGE_MS / 1000 / _RENEWALS_WITHIN_AGE,
    ) -> None:
        """Ask nothing yet; the client is created when it is needed.

        Args:
            make: Creates a client.
            topics: Topics of all later questions; none for all topics of the cluster.
            renew_after_s: Age at which leaders are renewed in any case.
        """
        self._make = make
        self._topics = tuple(topics)
        self._renew_after_s = renew_after_s
        self._retired: list[tuple[float, AdminClient]] = []
        self._admin: AdminClient | None = None
        self.listed_at = float("-inf")
        self._answered_at = float("-inf")
        self._leaders: dict[PartitionKey, int] = {}
        self._live: frozenset[int] = frozenset()
        self.replication: dict[PartitionKey, Replication] = {}
        self.brokers: int | None = None
        self._addresses: dict[int, str] = {}
        self._is_doubted = True
        self.silent: set[int] = set()

    @property
    def admin(self) -> AdminClient:
        """The client; a new one after a broker did not answer a request for metadata.

        Raises:
            KafkaException: It cannot be created for lack of a token.
        """
        if self._admin is None:
            self._admin = self._make()
        return self._admin

    def listing(self, *, timeout_s: float) -> ClusterMetadata:
        """Metadata of the topics.

        Raises:
            KafkaException: No broker answered within `timeout_s`.
        """
        return self.of_any_broker(self._listing, timeout_s=timeout_s)

    def _listing(self, admin: AdminClient, timeout_s: float) -> ClusterMetadata:
        # A request by name returns a deleted or forbidden topic with its error.
        found, *others = [admin.list_topics(topic, timeout=timeout_s) for topic in self._topics or (None,)]
        for other in others:
            found.topics |= other.topics
            found.brokers |= other.brokers
        return found

    def of_any_broker(self, ask: Callable[[AdminClient, float], T], *, timeout_s: float) -> T:
        """Return what `ask` returns; a broker that does not answer costs half of the time, then another one is asked.

        Args:
            ask: Called with a client and a timeout in seconds; raises KafkaException without an answer.
            timeout_s: For both brokers together.

        Raises:
            KafkaException: The second broker did not answer either.
        """
        ends_at = time.monotonic() + timeout_s
        try:
            return ask(self.admin, timeout_s / 2)
        except KafkaException:
            # The same client may ask the same broker again. A new one takes the first broker that accepts it.
            other = self._make()
            answer = ask(other, max(_LEAST_S, ends_at - time.monotonic()))
            self._retire()
            self._admin = other
            return answer

    def _retire(self) -> None:
        now = time.monotonic()
        self._retired = [(since, admin) for since, admin in self._retired if now - since < _RETIRED_FOR_S]
        if self._admin is not None:
            self._retired.append((now, self._admin))

    def doubt(self) -> None:
        """Have leaders renewed before their next use, because an answer suggests that they have changed."""
        self._is_doubted = True

    def prepare(self, wanted: list[PartitionKey], *, timeout_s: float) -> None:
        """Renew leaders that are in doubt or old, or that lack a wanted partition.

        Raises:
            KafkaException: No broker answered, and no leaders were known before.
        """
        is_old = time.monotonic() - self._answered_at > self._renew_after_s
        if not (self._is_doubted or is_old or any(key not in self._leaders for key in wanted)):
            return
        if not self._leaders:
            self.relisted(timeout_s=timeout_s)
            return
        # A silent broker must not use up the time of leaders that answer.
        self.renew(timeout_s=timeout_s / 2)

    def renew(self, *, timeout_s: float) -> None:
        """Request leaders; without an answer the known ones stay, and stay in doubt."""
        try:
            self.relisted(timeout_s=timeout_s)
        except KafkaException:
            self._is_doubted = True

    def of(self, key: PartitionKey) -> int | str:
        """Broker id of the leader, or why no leader can be asked."""
        leader = self._leaders.get(key)
        if leader is None:
            return "no broker lists this partition"
        if leader < 0:
            return "the partition has no leader"
        # It was lost a moment ago.
        return (
            leader
            if leader in self._live
            else f"its leader, {self.name(leader)}, is not among the live brokers"
        )

    def name(self, broker: int) -> str:
        """`broker 2 (host:port)`."""
        address = self._addresses.get(broker)
        return f"broker {broker} ({address})" if address else f"broker {broker}"

    def relisted(self, *, timeout_s: float) -> ClusterMetadata:
        """Metadata of the topics, from which leaders are then taken.

        Raises:
            KafkaException: No broker answered within `timeout_s`; leaders stay the same.
        """
        try:
            metadata = self.listing(timeout_s=timeout_s)
        finally:
            self.listed_at = time.monotonic()
        self._answered_at = self.listed_at
        self._is_doubted = False
        # A broker that is down is not listed, and its address is what an operator needs.
        self._addresses |= {one.id: f"{one.host}:{one.port}" for one in metadata.brokers.values()}
        self._live = frozenset(metadata.brokers)
        self.brokers = len(self._live)
        self.replication = {
            (name, number): _replication(partition)
            for name, topic in metadata.topics.items()
            for number, partition in topic.partitions.items()
        }
        self._leaders = {
            (name, number): partition.leader
            for name, topic in metadata.topics.items()
            for number, partition in topic.partitions.items()
        }
        return metadata


def _replication(partition: PartitionMetadata) -> Replication:
    return Replication(
        leader_broker=None if partition.leader < 0 else partition.leader,
        preferred_leader=next(iter(partition.replicas), None),
        replicas=len(partition.replicas),
        in_sync_replicas=len(partition.isrs),
    )


# Workers serve many batches: a client for each batch would leave connections and threads behind.
_known: dict[str, Leaders] = {}


def leaders_of(properties: dict[str, Any]) -> Leaders:
    """The leaders of this process for properties of librdkafka with unresolved references."""
    key = repr(sorted(properties.items()))
    if key not in _known:
        max_age_ms = float(properties.get("metadata.max.age.ms", _MAX_AGE_MS))
        _known[key] = Leaders(
            lambda: admin_of(properties),
            renew_after_s=max_age_ms / 1000 / _RENEWALS_WITHIN_AGE,
        )
    return _known[key]
