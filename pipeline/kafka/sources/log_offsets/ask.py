"""Source: what a worker of `sources.log_offsets` asks the brokers, as rows."""

from collections.abc import Iterator
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import OffsetSpec

from pipeline import clock
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.list_offsets.question import Question
from pipeline.kafka.sources.log_offsets.ids import TopicIds
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Slice

Row = dict[str, Any]

_ISOLATION = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}


_NO_PARTITION: Row = dict.fromkeys(("topic", "topic_id", "partition", "log_start_offset", "log_end_offset"))
# Ids are asked for before offsets. A broker that owes them must not hold up what is there.
_IDS_WAIT_S = 0.5


def list_topics(settings: LogOffsetsSettings) -> tuple[dict[str, list[int]], str | None]:
    """Partition numbers of every wanted topic that the cluster knows, and why the list may be incomplete.

    Raises:
        KafkaException: The cluster did not answer within `request_timeout_s`.
    """
    listed = leaders_of(settings.properties).listing(timeout_s=settings.request_timeout_s).topics
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
        yield {
            **_NO_PARTITION,
            "isolation": settings.isolation,
            "observed_at_ms": clock.now_ms(),
            "error": share.error,
        }
    wanted = [(topic, number) for topic, numbers in share.topics for number in numbers]
    if not wanted:
        return
    leaders, timeout_s = leaders_of(settings.properties), settings.request_timeout_s
    isolation = _ISOLATION[settings.isolation]
    asked_ids = TopicIds(leaders.admin, [topic for topic, _ in share.topics], timeout_s=timeout_s)
    asks = (OffsetSpec.earliest(), isolation), (OffsetSpec.latest(), isolation)
    answers = Question(leaders, asks, timeout_s=timeout_s).answers(wanted)
    ids = asked_ids.known(wait_s=_IDS_WAIT_S)
    for topic, number in wanted:
        answer = answers[topic, number]
        log_start, log_end = answer.offsets or (None, None)
        yield {
            "topic": topic,
            "topic_id": ids.get(topic),
            "partition": number,
            "log_start_offset": log_start,
            "log_end_offset": log_end,
            "isolation": settings.isolation,
            "observed_at_ms": answer.observed_at_ms,
            "error": answer.error,
        }
