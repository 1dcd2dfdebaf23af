"""The offsets topic of a live broker, read on from where it was left, and the table of groups that comes of it."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicCollection, TopicPartition

from pipeline.decode.step import Decoder
from pipeline.kafka.sources.records.taking import RECORDS
from pipeline.source.decoded import Decoded, decoded_of
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC, admin_client
from tests.support.groups.consumer_group_table import Groups
from tests.support.job.batches import FILTERS
from tests.support.waiting import wait_until


class GroupLog:
    """Reads as a job does, without Spark.

    Attributes:
        groups: The table of groups.
        quarantined: Why records could not be read.
    """

    def __init__(self, bootstrap: str) -> None:
        """Nothing is read yet."""
        self.groups = Groups()
        self.quarantined: list[str] = []
        self._admin = admin_client(bootstrap)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": "false",
                "log_level": 0,
            }
        )
        self._places = [TopicPartition(OFFSETS_TOPIC, number, 0) for number in range(OFFSETS_PARTITIONS)]
        self._consumer.assign(self._places)

    def close(self) -> None:
        """End the reader."""
        self._consumer.close()

    def read_on(self) -> int:
        """Take in what was written since, all of it as one batch; how many records of groups there were."""
        ends = {
            place.partition: self._consumer.get_watermark_offsets(place, timeout=10)[1]
            for place in self._places
        }
        batches: list[pa.RecordBatch] = []

        def is_read() -> bool:
            messages = [one for one in self._consumer.consume(500, timeout=0.2) if one.error() is None]
            if messages:
                batches.extend(_decoded(messages))
            return all(
                place.offset >= ends[place.partition] or ends[place.partition] == 0
                for place in self._consumer.position(self._places)
            )

        wait_until(is_read, what="the end of the offsets topic")
        read = decoded_of(batches)
        self.quarantined += read.kind("bad")["reason"].to_pylist()
        self.groups.fold(read.newest(), self._names())
        return _n_group_records(read)

    def _names(self) -> dict[str, str]:
        topics = list(self._admin.list_topics(timeout=10).topics)
        described = self._admin.describe_topics(TopicCollection(topics))
        ids = {topic: str(future.result(10).topic_id) for topic, future in described.items()}
        return {one.replace("+", "-").replace("/", "_"): topic for topic, one in ids.items()}


def _n_group_records(read: Decoded) -> int:
    return sum(
        read.kind(kind).num_rows
        for kind in ("group", "group_tombstone", "group_record", "group_record_tombstone")
    )


def _decoded(messages: Sequence[Message]) -> list[pa.RecordBatch]:
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": [one.topic() for one in messages],
            "partition": [one.partition() for one in messages],
            "offset": [one.offset() for one in messages],
            "timestamp": [one.timestamp()[1] * 1000 for one in messages],
            "key": [one.key() for one in messages],
            "value": [one.value() for one in messages],
        },
        schema=RECORDS,
    )
    return list(Decoder(FILTERS).decode(batch, Counter()))
