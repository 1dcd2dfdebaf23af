"""Start offsets of a follower: always numbers, because a later assign() must repeat them."""

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, TopicPartition

from assignor.clients.clock import clock_s
from assignor.clients.follower.state import PartitionKey


class Stored(NamedTuple):
    """Committed offset and metadata of a partition; the offset is negative without a commit."""

    offset: int
    metadata: str = ""


def committed_offsets(
    consumer: Consumer, places: AbstractSet[PartitionKey], *, timeout_s: float
) -> tuple[dict[PartitionKey, Stored], str]:
    """Return the coordinator's answers within that time, and the last problem; empty if there was none."""
    return _asked(lambda asked: consumer.committed(asked, timeout=timeout_s), _at(places, 0))


def start_offsets(
    consumer: Consumer, places: AbstractSet[PartitionKey], *, earliest: bool, timeout_s: float
) -> tuple[dict[PartitionKey, Stored], str]:
    """Return the committed offset of each partition; without one, the beginning or the end of its log.

    Returns within `timeout_s`.

    Returns:
        The offsets found, and the last problem; empty if there was none. Partitions of a silent coordinator or
        leader are missing.
    """
    deadline_s = clock_s() + timeout_s
    committed, problem = committed_offsets(consumer, places, timeout_s=timeout_s)
    never = [key for key, found in committed.items() if found.offset < 0]
    left_s = max(deadline_s - clock_s(), 0.0)
    bounds, problem_of_bounds = bound_offsets(consumer, never, earliest=earliest, timeout_s=left_s)
    known = {key: found for key, found in committed.items() if found.offset >= 0}
    return {**known, **{key: Stored(offset) for key, offset in bounds.items()}}, problem_of_bounds or problem


def bound_offsets(
    consumer: Consumer,
    places: Collection[PartitionKey],
    *,
    earliest: bool,
    timeout_s: float,
) -> tuple[dict[PartitionKey, int], str]:
    """Return the first offset of each log, or the one after its last record; and the last problem.

    Returns within `timeout_s`. Partitions of a silent leader are missing.
    """
    deadline_s = clock_s() + timeout_s
    # The names of both for a reader are also the times that Kafka's ListOffsets takes for them.
    at = OFFSET_BEGINNING if earliest else OFFSET_END

    def ask(some: Collection[PartitionKey], within_s: float) -> tuple[dict[PartitionKey, Stored], str]:
        return _asked(lambda asked: consumer.offsets_for_times(asked, timeout=within_s), _at(some, at))

    is_one = len(places) <= 1
    found, problem = ask(places, timeout_s if is_one else timeout_s / 2)
    if problem and not found and not is_one:
        # librdkafka returns nothing as long as one of the leaders is silent.
        for led in _by_leader(consumer, places, within_s=_half_until(deadline_s)):
            more, problem_of_leader = ask(led, _half_until(deadline_s))
            found, problem = {**found, **more}, problem_of_leader or problem
    return {key: bound.offset for key, bound in found.items()}, problem if len(found) < len(places) else ""


def _half_until(deadline_s: float) -> float:
    """Return half of the time left, so that one silent broker leaves time to ask the next."""
    return max(deadline_s - clock_s(), 0.0) / 2


def _by_leader(
    consumer: Consumer, places: Collection[PartitionKey], *, within_s: float
) -> list[list[PartitionKey]]:
    """Return the partitions of each leader; those whose leader is not known are missing."""
    deadline_s = clock_s() + within_s
    wanted, leaders = frozenset(places), dict[int, list[PartitionKey]]()
    for topic in sorted({topic for topic, _ in wanted}):
        try:
            found = consumer.list_topics(topic, timeout=max(deadline_s - clock_s(), 0.0)).topics
        except KafkaException:
            break
        partitions = found[topic].partitions if topic in found else {}
        for number, partition in partitions.items():
            if (topic, number) in wanted and partition.leader >= 0:
                leaders.setdefault(partition.leader, []).append((topic, number))
    return list(leaders.values())


def _at(places: Collection[PartitionKey], offset: int) -> list[TopicPartition]:
    return [TopicPartition(*key, offset) for key in sorted(places)]


def _asked(
    ask: Callable[[list[TopicPartition]], list[TopicPartition]], asked: list[TopicPartition]
) -> tuple[dict[PartitionKey, Stored], str]:
    if not asked:
        return {}, ""
    try:
        answer = ask(asked)
    except KafkaException as error:
        return {}, str(error.args[0])
    problems = [str(found.error) for found in answer if found.error is not None]
    known = {
        (found.topic, found.partition): Stored(found.offset, found.metadata or "")
        for found in answer
        if found.error is None
    }
    return known, problems[-1] if problems else ""
