"""One Kafka client, and which broker it believes to lead each partition.

librdkafka asks for metadata of its own accord only every 15 minutes (`metadata.max.age.ms`). Until then a restarted
broker answers FENCED_LEADER_EPOCH and an added partition is unknown. A full listing on the same client renews
leaders and their epochs, so one is made whenever an answer suggests that they are out of date.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata

from pipeline.kafka.client import admin_of
from pipeline.kafka.positions import PartitionKey

T = TypeVar("T")

# librdkafka's default, after which it forgets what it was told. Leaders are renewed well before.
_MAX_AGE_MS = 900_000
_RENEWALS_WITHIN_AGE = 3
_LEAST_S = 0.001
# Whose calls are settled by then; a client must not be destroyed by the thread that settles its last call.
_RETIRED_FOR_S = 600.0


class Replication(NamedTuple):
    """Where a partition is kept, as the metadata says."""

    leader_broker: int | None
    """Broker id; None when it has no leader."""
    preferred_leader: int | None
    """The first of its replicas."""
    replicas: int
    in_sync_replicas: int


@final
class Leaders:
    """A client and the leaders it goes by.

    Attributes:
        listed_at: When leaders were last asked for, whether or not an answer came; s of the monotonic clock.
        replication: By partition, as old as the leaders are.
        brokers: Live ones; None before the first answer.
        silent: Leaders whose time was up before they answered, when they were asked last.
    """

    def __init__(
        self,
        make: Callable[[], AdminClient],
        topics: Sequence[str] = (),
        *,
        renew_after_s: float = _MAX_AGE_MS / 1000 / _RENEWALS_WITHIN_AGE,
    ) -> None:
        """Ask nothing; the client is made when it is needed.

        Args:
            make: Makes one.
            topics: All that will be asked for; none for those of the whole cluster.
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
        """The client; another one after a broker did not answer it for metadata.

        Raises:
            KafkaException: It cannot be made, as there is no token to log in with.
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
        # By its name, a topic that is gone or refused is listed with the reason.
        found, *others = [admin.list_topics(topic, timeout=timeout_s) for topic in self._topics or (None,)]
        for other in others:
            found.topics |= other.topics
            found.brokers |= other.brokers
        return found

    def of_any_broker(self, ask: Callable[[AdminClient, float], T], *, timeout_s: float) -> T:
        """What `ask` returns; a broker that does not answer costs half of the time, then another one is asked.

        Args:
            ask: Given a client and seconds; raises KafkaException without an answer.
            timeout_s: For both.

        Raises:
            KafkaException: The second one did not answer either.
        """
        ends_at = time.monotonic() + timeout_s
        try:
            return ask(self.admin, timeout_s / 2)
        except KafkaException:
            # The same client may well ask the same broker again. A new one takes the first that lets it in.
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
        """An answer suggests that leaders have changed: renew them before they are used again."""
        self._is_doubted = True

    def prepare(self, wanted: list[PartitionKey], *, timeout_s: float) -> None:
        """Renew what is doubted, old, or does not name a partition that is wanted.

        Raises:
            KafkaException: No broker answered, and nothing was known before either.
        """
        is_old = time.monotonic() - self._answered_at > self._renew_after_s
        if not (self._is_doubted or is_old or any(key not in self._leaders for key in wanted)):
            return
        if not self._leaders:
            self.relisted(timeout_s=timeout_s)
            return
        # Known leaders that answer must not lose their time to a broker that does not.
        self.renew(timeout_s=timeout_s / 2)

    def renew(self, *, timeout_s: float) -> None:
        """Ask for leaders; without an answer those known before stay, and stay in doubt."""
        try:
            self.relisted(timeout_s=timeout_s)
        except KafkaException:
            self._is_doubted = True

    def of(self, key: PartitionKey) -> int | str:
        """Broker id of the leader, or why there is none to ask."""
        leader = self._leaders.get(key)
        if leader is None:
            return "no broker lists this partition"
        if leader < 0:
            return "the partition has no leader"
        # One that was lost a moment ago.
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
        """Metadata of the topics; leaders are as it says from now on.

        Raises:
            KafkaException: No broker answered within `timeout_s`; leaders stay as they were.
        """
        try:
            metadata = self.listing(timeout_s=timeout_s)
        finally:
            self.listed_at = time.monotonic()
        self._answered_at = self.listed_at
        self._is_doubted = False
        # A broker that is down is not listed; its address is what an operator looks for.
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


# Workers are reused from batch to batch: a client for each would leave connections and threads behind.
_known: dict[str, Leaders] = {}


def leaders_of(properties: dict[str, Any]) -> Leaders:
    """The one of this process for these properties of librdkafka, whose references are still unresolved."""
    key = repr(sorted(properties.items()))
    if key not in _known:
        max_age_ms = float(properties.get("metadata.max.age.ms", _MAX_AGE_MS))
        _known[key] = Leaders(
            lambda: admin_of(properties),
            renew_after_s=max_age_ms / 1000 / _RENEWALS_WITHIN_AGE,
        )
    return _known[key]
