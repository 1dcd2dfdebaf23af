"""Source: topic ids, by which a topic is told from another one that had its name before.

librdkafka's listing has none, so topics are also described when offsets are asked for. An id that is not there in
time, or that an older broker does not give, is no statement.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

_CALL_TOPICS = 100
# Kafka's Uuid.ZERO_UUID: the broker has no ids.
_NO_ID = "A" * 22


@final
class TopicIds:
    """A question that is on its way from the moment this is made."""

    def __init__(self, admin: AdminClient, topics: Sequence[str], *, timeout_s: float) -> None:
        """Ask."""
        self._futures: dict[str, Future[TopicDescription]] = {}
        for begin in range(0, len(topics), _CALL_TOPICS):
            names = TopicCollection(list(topics[begin : begin + _CALL_TOPICS]))
            self._futures |= admin.describe_topics(names, request_timeout=timeout_s)

    def known(self, *, wait_s: float) -> dict[str, str]:
        """Ids by topic, as Kafka writes them, of those that are answered within `wait_s`."""
        ends_at = time.monotonic() + wait_s
        found: dict[str, str] = {}
        for topic, future in self._futures.items():
            try:
                described = future.result(timeout=max(0.0, ends_at - time.monotonic()))
            except (FutureTimeoutError, KafkaException):
                continue
            # librdkafka writes ids in the ordinary alphabet of base 64, Kafka in the one for URLs.
            topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")
            if topic_id != _NO_ID:
                found[topic] = topic_id
        return found
