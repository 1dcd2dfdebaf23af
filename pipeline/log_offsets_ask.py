"""Source: what `log_offsets` asks a broker, through confluent-kafka's AdminClient, one client per worker."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.kafka_client import resolve
from pipeline.log_offsets import LogOffsetsSettings, Slice

Row = dict[str, Any]

# Workers are reused from batch to batch: a client for each would leave connections and threads behind.
_clients: dict[str, AdminClient] = {}

_ISOLATION = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}


def list_topics(settings: LogOffsetsSettings) -> tuple[dict[str, list[int]], str | None]:
    """Partition numbers of every wanted topic that the cluster knows, and why the list may be incomplete.

    Raises:
        KafkaException: The cluster did not answer within `request_timeout_s`.
    """
    listed = _client(settings).list_topics(timeout=settings.request_timeout_s).topics
    wanted = {name: topic for name, topic in sorted(listed.items()) if settings.wants(name)}
    # A topic whose metadata cannot be had just now is not a topic that is gone.
    unclear = [
        f"topic {name}: {topic.error.str()}"
        for name, topic in wanted.items()
        if topic.error is not None and topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART
    ]
    known = {name: sorted(topic.partitions) for name, topic in wanted.items() if topic.error is None}
    return known, unclear[0] if unclear else None


def ask(settings: LogOffsetsSettings, share: Slice) -> Iterator[Row]:
    """Rows for one share; a question that fails becomes a row with its error."""
    if share.carries_listing:
        yield _row(None, None, settings, error=share.error)
    wanted = [TopicPartition(topic, number) for topic, numbers in share.topics for number in numbers]
    if not wanted:
        return
    try:
        starts = _ask(settings, wanted, OffsetSpec.earliest())
        ends = _ask(settings, wanted, OffsetSpec.latest())
    except Exception as error:  # noqa: BLE001 - whatever the client says, the previous values stay and the row says why
        yield from (_row(one.topic, one.partition, settings, error=str(error)) for one in wanted)
        return
    for one in wanted:
        yield _answer(one, settings, starts[one], ends[one])


def _ask(
    settings: LogOffsetsSettings, wanted: list[TopicPartition], spec: OffsetSpec
) -> dict[TopicPartition, Future[Any]]:
    futures = _client(settings).list_offsets(
        dict.fromkeys(wanted, spec),
        isolation_level=_ISOLATION[settings.isolation],
        request_timeout=settings.request_timeout_s,
    )
    return dict(futures)


def _answer(one: TopicPartition, settings: LogOffsetsSettings, start: Future[Any], end: Future[Any]) -> Row:
    try:
        return _row(
            one.topic,
            one.partition,
            settings,
            # The log end is asked last: commits planned for this batch are never newer than it.
            log_start_offset=start.result(timeout=settings.request_timeout_s + 5).offset,
            log_end_offset=end.result(timeout=settings.request_timeout_s + 5).offset,
        )
    except Exception as error:  # noqa: BLE001 - as above, for one partition
        return _row(one.topic, one.partition, settings, error=str(error) or type(error).__name__)


def _row(
    topic: str | None,
    partition: int | None,
    settings: LogOffsetsSettings,
    *,
    log_start_offset: int | None = None,
    log_end_offset: int | None = None,
    error: str | None = None,
) -> Row:
    return {
        "topic": topic,
        "partition": partition,
        "log_start_offset": log_start_offset,
        "log_end_offset": log_end_offset,
        "isolation": settings.isolation,
        "observed_at_ms": time.time_ns() // 1_000_000,
        "error": error,
    }


def _client(settings: LogOffsetsSettings) -> AdminClient:
    key = repr(sorted(settings.properties.items()))
    if key not in _clients:
        _clients[key] = AdminClient({**resolve(settings.properties)})
    return _clients[key]
