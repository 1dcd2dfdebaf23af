"""Source: topic ids, which tell a topic from an earlier one of the same name.

librdkafka's listing has no ids, so topics are also described when offsets are requested. An id that does not come in
time, or that an older broker does not return, means nothing.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

_CALL_TOPICS = 100
# Kafka's Uuid.ZERO_UUID: the broker knows no ids.
_NO_ID = "A" * 22


@final
class TopicIds:
    """A request for topic ids, sent on creation."""

    def __init__(self, admin: AdminClient, topics: Sequence[str], *, timeout_s: float) -> None:
        """Send the request."""
        self._futures: dict[str, Future[TopicDescription]] = {}
        for begin in range(0, len(topics), _CALL_TOPICS):
            names = TopicCollection(list(topics[begin : begin + _CALL_TOPICS]))
            self._futures |= admin.describe_topics(names, request_timeout=timeout_s)

    def known(self, *, wait_s: float) -> dict[str, str]:
        """Topic ids as Kafka writes them, by topic, as far as they are answered within `wait_s`."""
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
