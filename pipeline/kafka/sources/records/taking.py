"""Source: the messages of a consumer that are records of its spans, column by column.

Most of the time of reading goes into a million method calls, so each attribute is read once per message, and work per
partition is done once for each partition among them.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, Message

from assignor.model.arrays import Int64s
from pipeline.arrow_columns import TIMESTAMP
from pipeline.kafka.positions import REFUSED, TRUNCATED, UNKNOWN_EPOCH, PartitionKey, Span

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

log = logging.getLogger(__name__)

_MOST_PASSED_OVER = 50
"""In one read. Each takes a fetch, and unpacks up to the client's limit of 100 MB."""
# A timestamp column has microseconds in 64 bits; a producer may have set a time beyond them.
_LARGEST_TIME_MS = (2**63 - 1) // 1000
_BEHIND_THE_LOG = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)


@dataclass(slots=True)
class Progress:
    """Progress of one span."""

    span: Span
    offset: int
    """Offset of the next record to read."""
    leader_epoch: int
    is_over: bool = False
    """This batch gets no more of it."""
    error: str | None = None
    silent_s: float = 0.0
    """Time without a record of it."""
    may_pass_over: bool = False
    """Records that cannot be unpacked do not hold it up."""
    must_seek: bool = False
    """The consumer is not where it goes on."""
    passed_over: int = 0
    """How often that has happened."""

    def row(self) -> dict[str, Any]:
        """A decoded row of kind 'read'."""
        return {
            "topic": self.span.topic,
            "partition": self.span.partition,
            "position": self.offset,
            "leader_epoch": self.leader_epoch,
            "error": self.error,
        }

    def heard_nothing_for(self, silent_s: float, timeout_s: float) -> None:
        """Abandon the span after too long a silence."""
        self.silent_s = silent_s
        if not self.is_over and silent_s > timeout_s:
            self.end_at(self.offset, f"its leader does not answer: no record within {timeout_s:g} s")

    def end_at(self, offset: int, error: str | None = None) -> None:
        """End the span; the next batch continues at this offset."""
        self.offset, self.is_over, self.error = offset, True, error

    def _pass_over(self, base: int, error: KafkaError) -> None:
        """Go on behind a batch of records that unpacks to more than the client takes: a few kilobytes suffice for that.

        Nothing says where the batch ends, so steps double while the same one is in front, and may leave out as many
        records behind it.

        Args:
            base: Offset of its first record.
            error: As of the client.
        """
        log.warning(
            "records that cannot be unpacked are passed over",
            extra={
                "topic": self.span.topic,
                "partition": self.span.partition,
                "offset": base,
                "error": error.str(),
            },
        )
        self.offset = min(max(self.offset, base) + max(1, self.offset - base), self.span.end)
        self.is_over = self.offset >= self.span.end
        self.must_seek = not self.is_over
        self.passed_over += 1
        if self.passed_over > _MOST_PASSED_OVER and not self.is_over:
            self.end_at(self.offset, f"many records cannot be unpacked: {error.str()}")

    def end_by(self, error: KafkaError, offset: int) -> None:
        """End the span because of a message that is no record."""
        if error.code() == KafkaError._PARTITION_EOF:
            # Before the end there are only transaction markers and gaps of compaction. A new leader may not know its
            # high watermark yet; the next batch continues after the last record.
            self.end_at(self.span.end if offset >= self.span.end else self.offset)
        elif error.code() == KafkaError._BAD_COMPRESSION and self.may_pass_over:
            self._pass_over(offset, error)
        elif error.code() in _BEHIND_THE_LOG:
            self.end_at(self.offset, f"{TRUNCATED}: {error.str()}")
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self.end_at(self.offset, f"{REFUSED}: {error.str()}")
        else:
            self.end_at(self.offset, error.str())


def take(
    messages: Sequence[Message], progress: Mapping[PartitionKey, Progress]
) -> tuple[pa.RecordBatch, set[PartitionKey]]:
    """The records of the unfinished spans, as `RECORDS`, and the partitions that have answered.

    Messages of one partition are in the order of its log; `progress` is updated.
    """
    errors = {at: error for at, message in enumerate(messages) if (error := message.error()) is not None}
    topics, partitions, offsets = places = _places(messages)
    kept: list[Int64s] = []
    answered: set[PartitionKey] = set()
    for key, rows in _by_partition(topics, partitions):
        one = progress.get(key)
        if one is None or one.is_over:
            continue
        answered.add(key)
        kept.append(_taken(one, rows, offsets, errors))
        if kept[-1].size:
            one.leader_epoch = _int(messages[kept[-1][-1]].leader_epoch())
    return _records(messages, places, np.sort(np.concatenate([np.empty(0, np.int64), *kept]))), answered


def _places(messages: Sequence[Message]) -> tuple[pa.Array, Int64s, Int64s]:
    """Topic, partition and offset of each message."""
    topics = pa.array([message.topic() for message in messages], pa.string())
    partitions = np.array([_int(message.partition()) for message in messages], np.int64)
    return topics, partitions, np.array([_int(message.offset()) for message in messages], np.int64)


def _records(
    messages: Sequence[Message], places: tuple[pa.Array, Int64s, Int64s], taken: Int64s
) -> pa.RecordBatch:
    topics, partitions, offsets = places
    records = [messages[at] for at in taken.tolist()]
    return pa.RecordBatch.from_arrays(
        [
            topics.take(pa.array(taken)),
            pa.array(partitions[taken], pa.int32()),
            pa.array(offsets[taken]),
            _times(records),
            pa.array([record.key() for record in records], pa.binary()),
            pa.array([record.value() for record in records], pa.binary()),
        ],
        schema=RECORDS,
    )


def _by_partition(topics: pa.Array, partitions: Int64s) -> Iterator[tuple[PartitionKey, Int64s]]:
    """The messages of each partition, ascending; an error without a partition shows as silence of others."""
    encoded = topics.dictionary_encode()
    known = np.flatnonzero(encoded.indices.is_valid().to_numpy(zero_copy_only=False))
    topic = encoded.indices.fill_null(-1).to_numpy()[known].astype(np.int64)
    # Partition numbers are 32 bits.
    code = (topic << 32) + partitions[known]
    order = np.argsort(code, kind="stable")
    ends = np.flatnonzero(np.diff(code[order])) + 1
    for rows in np.split(known[order], ends) if known.size else ():
        yield (topics[rows[0]].as_py(), int(partitions[rows[0]])), rows


def _taken(one: Progress, rows: Int64s, offsets: Int64s, errors: Mapping[int, KafkaError]) -> Int64s:
    """The messages that are records of the span; updates its progress."""
    failed = next((at for at in rows.tolist() if at in errors), None) if errors else None
    # Messages after an error are no longer in the order of the log.
    records = rows if failed is None else rows[rows < failed]
    taken = records[: np.searchsorted(offsets[records], one.span.end)]
    if taken.size:
        one.offset = int(offsets[taken[-1]]) + 1
        one.is_over = one.offset >= one.span.end
    if taken.size < records.size:
        one.end_at(one.span.end)
    elif failed is not None and not one.is_over:
        one.end_by(errors[failed], int(offsets[failed]))
    return taken


def _times(records: Sequence[Message]) -> pa.Array:
    millis = np.array([record.timestamp()[1] for record in records], np.int64)
    is_unknown = (millis > _LARGEST_TIME_MS) | (millis < -_LARGEST_TIME_MS)
    return pa.array(np.where(is_unknown, 0, millis) * 1000, mask=is_unknown).cast(TIMESTAMP)


def _int(number: int | None) -> int:
    return UNKNOWN_EPOCH if number is None else number
