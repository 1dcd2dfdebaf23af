"""Source: what `decode.records` does with Kafka: one consumer per worker, its partitions assigned, no group joined."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.arrow_columns import TIMESTAMP
from pipeline.kafka.client import resolve
from pipeline.kafka.positions import TRUNCATED, UNKNOWN_EPOCH, PartitionKey, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How a worker reads."""

    properties: Mapping[str, str]
    """librdkafka properties; references to secrets are still unresolved, executors resolve their own."""
    timeout_s: float
    """A span without progress for so long is given up."""


RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)

_READER = {
    "group.id": "lagwise-reader",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # Offsets committed in a transaction that was aborted must never show.
    "isolation.level": "read_committed",
    # A position that the log does not have is a reason to read again, never one to skip.
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    # The log's end is known; an answer that waits for more records only costs time.
    "fetch.wait.max.ms": "10",
    "fetch.error.backoff.ms": "100",
}
_AT_A_TIME = 50_000
_POLL_S = 0.1
# Microseconds of a timestamp column are 64 bits; a producer may have named a time beyond them.
_LARGEST_TIME_MS = (2**63 - 1) // 1000
_BEHIND_THE_LOG = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - public constant
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001 - public constant
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)

# Workers are reused from batch to batch: a consumer for each would connect and look up its leaders every time.
_consumers: dict[str, Consumer] = {}


@dataclass(slots=True)
class _Progress:
    """How far one span is."""

    span: Span
    offset: int
    """Next one to read."""
    leader_epoch: int
    is_over: bool = False
    """Nothing more is to be had in this batch."""
    error: str | None = None
    silent_s: float = 0.0
    """How long nothing has come of it."""

    def row(self) -> dict[str, Any]:
        return {
            "topic": self.span.topic,
            "partition": self.span.partition,
            "position": self.offset,
            "leader_epoch": self.leader_epoch,
            "error": self.error,
        }

    def heard_nothing_for(self, silent_s: float, timeout_s: float) -> None:
        self.silent_s = silent_s
        if not self.is_over and silent_s > timeout_s:
            self.end_at(self.offset, f"its leader does not answer: no record within {timeout_s:g} s")

    def end_at(self, offset: int, error: str | None = None) -> None:
        self.offset, self.is_over, self.error = offset, True, error


def consume(spans: list[Span], settings: ReadSettings) -> Iterator[pa.RecordBatch | list[dict[str, Any]]]:
    """Batches of `RECORDS` in the order of each log, then the rows that say how far each span was read."""
    consumer = _consumer(settings)
    progress = {span.key: _Progress(span, span.start, span.leader_epoch) for span in spans}
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
        # Its connections and what it knows of leaders may be what is wrong.
        _consumers.pop(_name(settings), consumer).close()
    yield [one.row() for one in progress.values()]


def _records(
    consumer: Consumer, progress: dict[PartitionKey, _Progress], timeout_s: float
) -> Iterator[pa.RecordBatch]:
    while open_spans := [one for one in progress.values() if not one.is_over]:
        # Time that whoever takes the records needs for them is no silence of a leader.
        begun = time.monotonic()
        # It returns as soon as it has so many, so that the last ones are not waited upon.
        left = sum(one.span.end - one.offset for one in open_spans)
        messages = consumer.consume(min(left, _AT_A_TIME), timeout=_POLL_S)
        waited_s = time.monotonic() - begun
        taken, answered = _taken(messages, progress)
        consumer.pause([TopicPartition(*key) for key in answered if progress[key].is_over])
        if taken:
            yield _batch(taken)
        for one in open_spans:
            one.heard_nothing_for(0.0 if one.span.key in answered else one.silent_s + waited_s, timeout_s)


def _taken(
    messages: list[Message], progress: Mapping[PartitionKey, _Progress]
) -> tuple[list[Message], set[PartitionKey]]:
    """The records of the spans that were not over, and the partitions that have answered."""
    taken: list[Message] = []
    answered: set[PartitionKey] = set()
    for message in messages:
        # An error that is about no partition shows again as the silence of some.
        key = (message.topic() or "", _int(message.partition()))
        if key in progress and not progress[key].is_over:
            answered.add(key)
            if _take(progress[key], message):
                taken.append(message)
    return taken, answered


def _take(one: _Progress, message: Message) -> bool:
    """Whether the message is a record of the span; says in `one` how far it is by it."""
    error = message.error()
    offset = _int(message.offset())
    if error is None:
        if offset >= one.span.end:
            one.end_at(one.span.end)
            return False
        one.leader_epoch = _int(message.leader_epoch())
        one.offset = offset + 1
        one.is_over = one.offset >= one.span.end
        return True
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - public constant
        # What is left before the end are markers of transactions and gaps of compaction. A leader that is new may
        # not know yet how far its log counts; the next batch goes on from the last record.
        one.end_at(one.span.end if offset >= one.span.end else one.offset)
    elif error.code() in _BEHIND_THE_LOG:
        one.end_at(one.offset, f"{TRUNCATED}: {error.str()}")
    else:
        one.end_at(one.offset, error.str())
    return False


def _int(number: int | None) -> int:
    return UNKNOWN_EPOCH if number is None else number


def _batch(messages: list[Message]) -> pa.RecordBatch:
    millis = [message.timestamp()[1] for message in messages]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([message.topic() for message in messages], pa.string()),
            pa.array([message.partition() for message in messages], pa.int32()),
            pa.array([message.offset() for message in messages], pa.int64()),
            pa.array(
                [ms * 1000 if -_LARGEST_TIME_MS <= ms <= _LARGEST_TIME_MS else None for ms in millis],
                pa.int64(),
            ).cast(TIMESTAMP),
            pa.array([message.key() for message in messages], pa.binary()),
            pa.array([message.value() for message in messages], pa.binary()),
        ],
        schema=RECORDS,
    )


def _name(settings: ReadSettings) -> str:
    return repr(sorted(settings.properties.items()))


def _consumer(settings: ReadSettings) -> Consumer:
    name = _name(settings)
    if name not in _consumers:
        _consumers[name] = Consumer({**resolve(settings.properties), **_READER})
    return _consumers[name]
