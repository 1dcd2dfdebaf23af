"""Where a follower starts to read: always a number, since a later assign() has to repeat it."""

import contextlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from confluent_kafka import Consumer, KafkaException, TopicPartition

from assignor.clients.follower.state import PartitionKey

_TIMEOUT_S = 10.0
_ATTEMPTS = 3
# The times that Kafka's ListOffsets takes for "the first record" and "after the last one".
_FIRST, _AFTER_LAST = -2, -1


def start_offsets(
    consumer: Consumer, places: AbstractSet[PartitionKey], *, earliest: bool
) -> dict[PartitionKey, int]:
    """Committed offset of each partition; without one, the beginning or the end of its log.

    Raises:
        KafkaException: The coordinator, or the leader of a partition without a commit, does not answer.
    """
    asked = [TopicPartition(*key) for key in sorted(places)]
    committed = _answered(lambda: consumer.committed(asked, timeout=_TIMEOUT_S)) if asked else {}
    time = _FIRST if earliest else _AFTER_LAST
    never = [TopicPartition(*key, time) for key, offset in committed.items() if offset < 0]
    bounds = _answered(lambda: consumer.offsets_for_times(never, timeout=_TIMEOUT_S)) if never else {}
    return {**committed, **bounds}


def _answered(ask: Callable[[], list[TopicPartition]]) -> dict[PartitionKey, int]:
    for _ in range(_ATTEMPTS - 1):
        # A broker that has just become coordinator or leader refuses until it has caught up.
        with contextlib.suppress(KafkaException):
            return _offsets(ask())
    return _offsets(ask())


def _offsets(answer: list[TopicPartition]) -> dict[PartitionKey, int]:
    errors = [partition.error for partition in answer if partition.error is not None]
    if errors:
        raise KafkaException(errors[0])
    return {(found.topic, found.partition): found.offset for found in answer}
