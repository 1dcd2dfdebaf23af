"""Source: the consumer of `decode.records`: one per worker, with assigned partitions and without a group."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, TopicPartition

from pipeline.kafka.client import resolve
from pipeline.kafka.positions import PartitionKey, Span
from pipeline.kafka.sources.records.settings import ReadSettings
from pipeline.kafka.sources.records.taking import Progress, take
from pipeline.kafka.tokens import ready

_READER = {
    "group.id": "lagwise-reader",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # Offsets of an aborted transaction must never show.
    "isolation.level": "read_committed",
    # A position outside of the log is a reason to read again, never to skip records.
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    # The log's end is known; a response that waits for more records only costs time.
    "fetch.wait.max.ms": "10",
    "fetch.error.backoff.ms": "100",
    # Beyond this number of waiting records the client pauses fetching, by default for a second, although they are taken
    # within tenths of one: a backlog was read at a quarter of the speed.
    "fetch.queue.backoff.ms": "10",
}
_AT_A_TIME = 50_000
_POLL_S = 0.1
# Workers serve many batches: a consumer for each batch would connect and look up its leaders every time.
_consumers: dict[str, Consumer] = {}


def consume(spans: list[Span], settings: ReadSettings) -> Iterator[pa.RecordBatch | list[dict[str, Any]]]:
    """Batches of `RECORDS` in the order of each log, then the rows with the position reached in each span."""
    progress = {
        span.key: Progress(
            span, span.start, span.leader_epoch, may_pass_over=span.topic in settings.passes_over
        )
        for span in spans
    }
    try:
        consumer = _consumer(settings)
    except KafkaException as failure:
        for one in progress.values():
            one.end_at(one.offset, failure.args[0].str())
        yield [one.row() for one in progress.values()]
        return
    try:
        consumer.assign([TopicPartition(*s.key, s.start, leader_epoch=s.leader_epoch) for s in spans])
        yield from _records(consumer, progress, settings.timeout_s)
    except KafkaException as failure:
        for one in progress.values():
            if not one.is_over:
                one.end_at(one.offset, failure.args[0].str())
    finally:
        # librdkafka keeps a partition paused through assignments, and resumes one of a new assignment a second late.
        with suppress(KafkaException):
            consumer.resume(consumer.assignment())
        consumer.unassign()
    if any(one.error for one in progress.values()):
        # Its connections or its leaders may be the cause.
        _consumers.pop(_name(settings), consumer).close()
    yield [one.row() for one in progress.values()]


def _records(
    consumer: Consumer, progress: dict[PartitionKey, Progress], timeout_s: float
) -> Iterator[pa.RecordBatch]:
    while open_spans := [one for one in progress.values() if not one.is_over]:
        # Time that the caller spends on the records does not count as silence of a leader.
        begun = time.monotonic()
        # It returns as soon as it has that many, without waiting for the last ones.
        left = sum(one.span.end - one.offset for one in open_spans)
        messages = consumer.consume(min(left, _AT_A_TIME), timeout=_POLL_S)
        waited_s = time.monotonic() - begun
        taken, answered = take(messages, progress)
        consumer.pause([TopicPartition(*key) for key in answered if progress[key].is_over])
        _seek(consumer, [progress[key] for key in answered])
        if taken.num_rows:
            yield taken
        for one in open_spans:
            one.heard_nothing_for(0.0 if one.span.key in answered else one.silent_s + waited_s, timeout_s)


def _seek(consumer: Consumer, answered: list[Progress]) -> None:
    for one in answered:
        if one.must_seek:
            consumer.seek(TopicPartition(*one.span.key, one.offset))
            one.must_seek = False


def _name(settings: ReadSettings) -> str:
    return repr(sorted(settings.properties.items()))


def _consumer(settings: ReadSettings) -> Consumer:
    name = _name(settings)
    if name not in _consumers:
        _consumers[name] = Consumer({**ready(resolve(settings.properties)), **_READER})
    return _consumers[name]
