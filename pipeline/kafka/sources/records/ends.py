"""Source: where the logs that the stream reads start and end, asked of each leader by itself.

librdkafka answers for the partitions of a leader that failed with a negative offset and no error, and one slow
leader holds back a whole call. So each leader gets calls of its own, and whatever is not an offset is a reason.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec

from pipeline.kafka.errors import FORBIDDEN, explained, trouble, unusable
from pipeline.kafka.positions import Answer, End, PartitionKey

_QUESTIONS = (
    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
)
# A leader that gave no answer last time gets no more than this, so that it does not hold up every batch.
_SUSPECT_TIMEOUT_S = 1.0
# librdkafka 2.16 can crash when a call's own time is up while it still looks for leaders; we stop waiting earlier.
_LEAST_CALL_S = 5.0
_METADATA_ATTEMPTS = 2
_SILENT = " does not answer"
_Futures = list[dict[TopicPartition, "Future[Any]"]]


class EndsAsker:
    """Asks, batch after batch; remembers who did not answer."""

    def __init__(
        self, make_admin: Callable[[], AdminClient], topics: Sequence[str], *, timeout_s: float
    ) -> None:
        """Nothing is asked yet."""
        self._make_admin = make_admin
        self._topics = tuple(topics)
        self._timeout_s = timeout_s
        self._admin: AdminClient | None = None
        self._suspects: frozenset[int] = frozenset()

    def __call__(self) -> dict[PartitionKey, Answer]:
        """What the leader of each partition of the topics says, or why there is no answer.

        Raises:
            BrokerUnavailableError: No broker answered at all.
            AccessRefusedError: The cluster does not let this user in, or read one of the topics.
        """
        answers: dict[PartitionKey, Answer] = {}
        leaders: dict[int, list[PartitionKey]] = defaultdict(list)
        names: dict[int, str] = {}
        with explained("the Kafka cluster cannot be used"):
            admin, listings = self._listed()
        for topic, listed in zip(self._topics, listings, strict=True):
            names |= {one.id: f"broker {one.id} ({one.host}:{one.port})" for one in listed.brokers.values()}
            for key, leader in _leaders(listed, topic):
                if leader < 0:
                    answers[key] = "it has no leader"
                else:
                    leaders[leader].append(key)
        silent = self._ask(admin, leaders, names, answers)
        self._suspects = frozenset(silent)
        if all(isinstance(answer, End) or answer.endswith(_SILENT) for answer in answers.values()):
            self._admin = admin
        return answers

    def _listed(self) -> tuple[AdminClient, list[ClusterMetadata]]:
        """A client, and what the brokers tell it of each topic."""
        # A client keeps leaders and their epochs for minutes; one that was wrong once is replaced. (One that has
        # nothing to send counts as false.)
        admin = self._make_admin() if self._admin is None else self._admin
        self._admin = None
        timeout_s = self._timeout_s / _METADATA_ATTEMPTS
        for attempt in range(1, _METADATA_ATTEMPTS + 1):
            try:
                return admin, [admin.list_topics(topic, timeout=timeout_s) for topic in self._topics]
            except KafkaException:
                if attempt == _METADATA_ATTEMPTS:
                    raise
                # It has asked a broker that hangs, and may again. A new one asks only those that have greeted it.
                admin = self._make_admin()
        raise AssertionError("unreachable")

    def _ask(
        self,
        admin: AdminClient,
        leaders: Mapping[int, list[PartitionKey]],
        names: Mapping[int, str],
        answers: dict[PartitionKey, Answer],
    ) -> set[int]:
        """Fill in `answers`; the leaders that did not answer in time."""
        asked = {leader: self._send(admin, keys) for leader, keys in sorted(leaders.items())}
        begun = time.monotonic()
        silent: set[int] = set()
        for leader, futures in asked.items():
            # Its own time-out is told a moment after it is over.
            deadline = begun + self._allowed_s(leader) + 0.1
            name = names.get(leader, f"broker {leader}")
            for key in leaders[leader]:
                answers[key] = _answer(key, futures, name, deadline)
            if all(answers[key] == f"{name}{_SILENT}" for key in leaders[leader]):
                silent.add(leader)
        return silent

    def _allowed_s(self, leader: int) -> float:
        return min(self._timeout_s, _SUSPECT_TIMEOUT_S) if leader in self._suspects else self._timeout_s

    def _send(self, admin: AdminClient, keys: list[PartitionKey]) -> _Futures:
        return [
            dict(
                admin.list_offsets(
                    {TopicPartition(*key): spec for key in keys},
                    isolation_level=isolation,
                    request_timeout=max(_LEAST_CALL_S, self._timeout_s),
                )
            )
            for spec, isolation in _QUESTIONS
        ]


def _leaders(listed: ClusterMetadata, topic: str) -> Iterator[tuple[PartitionKey, int]]:
    found = listed.topics[topic]
    if found.error is not None:
        raise unusable(topic, found.error)
    for number, partition in sorted(found.partitions.items()):
        yield (topic, number), partition.leader


def _answer(key: PartitionKey, futures: _Futures, broker: str, deadline: float) -> Answer:
    try:
        log_start, stable, high = (
            one[TopicPartition(*key)].result(timeout=max(0.0, deadline - time.monotonic())).offset
            for one in futures
        )
    except FutureTimeoutError:
        return f"{broker}{_SILENT}"
    except KafkaException as failure:
        return _reason(key, failure.args[0], broker)
    # A negative offset is librdkafka's for a leader that failed.
    if min(log_start, stable, high) < 0:
        return f"{broker}{_SILENT}"
    return End(log_start=log_start, stable=min(stable, high), high=high)


def _reason(key: PartitionKey, error: KafkaError, broker: str) -> str:
    if error.code() in FORBIDDEN:
        raise trouble(f"topic {key[0]} cannot be read", error)
    if error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:  # noqa: SLF001 - public constants
        return f"{broker}{_SILENT}"
    return f"{broker}: {error.str()}"
