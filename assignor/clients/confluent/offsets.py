"""Where a follower starts to read: always a number, since a later assign() has to repeat it."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, TopicPartition

from assignor.clients.clock import clock_s
from assignor.clients.follower.state import PartitionKey


def start_offsets(
    consumer: Consumer, places: AbstractSet[PartitionKey], *, earliest: bool, timeout_s: float
) -> tuple[dict[PartitionKey, int], str]:
    """Committed offset of each partition; without one, the beginning or the end of its log.

    Returns within `timeout_s`.

    Returns:
        What could be found out, and the last problem in words, empty if there was none. A coordinator or a leader
        that does not answer leaves its partitions out.
    """
    deadline_s = clock_s() + timeout_s
    committed, problem = _asked(lambda asked: consumer.committed(asked, timeout=timeout_s), _at(places, 0))
    never = [key for key, offset in committed.items() if offset < 0]
    left_s = max(deadline_s - clock_s(), 0.0)
    bounds, problem_of_bounds = bound_offsets(consumer, never, earliest=earliest, timeout_s=left_s)
    known = {key: offset for key, offset in committed.items() if offset >= 0}
    return {**known, **bounds}, problem_of_bounds or problem


def bound_offsets(
    consumer: Consumer,
    places: AbstractSet[PartitionKey] | list[PartitionKey],
    *,
    earliest: bool,
    timeout_s: float,
) -> tuple[dict[PartitionKey, int], str]:
    """First offset of each log, or the one behind its last record; and the last problem in words."""
    # The names of both for a reader are also the times that Kafka's ListOffsets takes for them.
    asked = _at(places, OFFSET_BEGINNING if earliest else OFFSET_END)
    return _asked(lambda asked: consumer.offsets_for_times(asked, timeout=timeout_s), asked)


def _at(places: AbstractSet[PartitionKey] | list[PartitionKey], offset: int) -> list[TopicPartition]:
    return [TopicPartition(*key, offset) for key in sorted(places)]


def _asked(
    ask: Callable[[list[TopicPartition]], list[TopicPartition]], asked: list[TopicPartition]
) -> tuple[dict[PartitionKey, int], str]:
    if not asked:
        return {}, ""
    try:
        answer = ask(asked)
    except KafkaException as error:
        return {}, str(error.args[0])
    problems = [str(found.error) for found in answer if found.error is not None]
    known = {(found.topic, found.partition): found.offset for found in answer if found.error is None}
    return known, problems[-1] if problems else ""
