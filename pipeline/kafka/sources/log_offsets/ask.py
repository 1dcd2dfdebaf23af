"""Source: present log start and log end offsets.

One row per partition:

    topic, topic_id, partition, log_start_offset, log_end_offset, last_stable_offset, isolation, observed_at_ms, error,
    leader_broker, preferred_leader, replicas, in_sync_replicas

`error` is set, and the offsets are null, if the broker did not answer. The row whose topic is null is about the listing
itself: with an error it is unknown which topics exist; without one, a topic that has no row has to be requested by name
(`topics_gone`). It alone has `brokers`, the number of live brokers. The batch does not fail, whatever happens to the
cluster: the rows have the errors.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec

from pipeline import clock
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.list_offsets.question import Question
from pipeline.kafka.sources.log_offsets.ids import TopicIds
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share, shared_out

Row = dict[str, Any]

LOG_OFFSETS = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
        ("isolation", pa.string()),
        ("observed_at_ms", pa.int64()),
        ("error", pa.string()),
        ("leader_broker", pa.int32()),
        ("preferred_leader", pa.int32()),
        ("replicas", pa.int32()),
        ("in_sync_replicas", pa.int32()),
        ("brokers", pa.int32()),
    ]
)

_ENDS = {
    "read_uncommitted": (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED),
    "read_committed": (IsolationLevel.READ_COMMITTED,),
}
"""Isolation levels whose end offsets are requested; the last one is the log end."""
# One task requests this many in about 0.7 s; two tasks are faster from twice as many.
_SHARE_PARTITIONS = 10_000
# Ids are requested before offsets. A broker that does not return them must not delay the offsets.
_IDS_WAIT_S = 0.5


def shares(settings: LogOffsetsSettings, *, tasks: int) -> list[Share]:
    """The wanted partitions in shares of equal size: as many as are worthwhile, and at most `splits`.

    Args:
        settings: Settings of the requests.
        tasks: Number of tasks that run at once: the limit of shares where `splits` sets none.
    """
    try:
        topics, error = _listed(settings)
    except Exception as failure:  # noqa: BLE001 - any error of the client goes into the row
        return [Share(error=f"topics could not be listed: {failure}", carries_listing=True)]
    worth = -(-sum(map(len, topics.values())) // _SHARE_PARTITIONS)
    found = shared_out(topics, min(settings.splits or tasks, max(1, worth)), error=error)
    return [replace(found[0], brokers=leaders_of(settings.properties).brokers), *found[1:]]


def _listed(settings: LogOffsetsSettings) -> tuple[dict[str, list[int]], str | None]:
    """Partition numbers of every wanted topic that the cluster knows, and why the list may be incomplete.

    Raises:
        KafkaException: The cluster did not answer within `request_timeout_s`.
    """
    listed = leaders_of(settings.properties).relisted(timeout_s=settings.request_timeout_s).topics
    wanted = {name: topic for name, topic in sorted(listed.items()) if settings.wants(name)}
    # A topic whose metadata is unavailable now is not a deleted topic.
    unclear = [
        f"topic {name}: {topic.error.str()}"
        for name, topic in wanted.items()
        if topic.error is not None and topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART
    ]
    known = {name: sorted(topic.partitions) for name, topic in wanted.items() if topic.error is None}
    return known, unclear[0] if unclear else None


def ask(settings: LogOffsetsSettings, share: Share) -> pa.RecordBatch:
    """Rows of `LOG_OFFSETS` for one share; a failed request becomes a row with its error."""
    try:
        offsets = list(_offsets(settings, share))
    except KafkaException as failure:
        return unanswered(settings, share, failure.args[0].str())
    return pa.RecordBatch.from_pylist([*_listing(settings, share), *offsets], LOG_OFFSETS)


def unanswered(settings: LogOffsetsSettings, share: Share, error: str) -> pa.RecordBatch:
    """Rows of `LOG_OFFSETS` for a share that cannot be requested: each has the error."""
    same = {"isolation": settings.isolation, "observed_at_ms": clock.now_ms(), "error": error}
    rows = [
        same | {"topic": topic, "partition": number} for topic, numbers in share.topics for number in numbers
    ]
    return pa.RecordBatch.from_pylist([*_listing(settings, share), *rows], LOG_OFFSETS)


def _listing(settings: LogOffsetsSettings, share: Share) -> Iterator[Row]:
    """The row about the listing, if the share carries it."""
    if share.carries_listing:
        same = {"isolation": settings.isolation, "observed_at_ms": clock.now_ms()}
        yield same | {"error": share.error, "brokers": share.brokers}


def _offsets(settings: LogOffsetsSettings, share: Share) -> Iterator[Row]:
    wanted = [(topic, number) for topic, numbers in share.topics for number in numbers]
    if not wanted:
        return
    leaders, timeout_s = leaders_of(settings.properties), settings.request_timeout_s
    asked_ids = TopicIds(leaders.admin, [topic for topic, _ in share.topics], timeout_s=timeout_s)
    # In this order no offset is above the one after it.
    asks = (
        (OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED),
        *((OffsetSpec.latest(), isolation) for isolation in _ENDS[settings.isolation]),
    )
    answers = Question(leaders, asks, timeout_s=timeout_s).answers(wanted)
    ids = asked_ids.known(wait_s=_IDS_WAIT_S)
    for topic, number in wanted:
        answer = answers[topic, number]
        log_start, last_stable, log_end = (
            (answer.offsets[0], answer.offsets[1], answer.offsets[-1]) if answer.offsets else (None,) * 3
        )
        yield {
            "topic": topic,
            "topic_id": ids.get(topic),
            "partition": number,
            "log_start_offset": log_start,
            "log_end_offset": log_end,
            "last_stable_offset": last_stable,
            "isolation": settings.isolation,
            "observed_at_ms": answer.observed_at_ms,
            "error": answer.error,
            **(kept._asdict() if (kept := leaders.replication.get((topic, number))) else {}),
        }
