"""Start offsets of a follower: always numbers, because a later assign() must repeat them."""

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, TopicPartition

from assignor.clients.clock import clock_s
from assignor.clients.follower.state import PartitionKey

_MOST_PARTS = 48
"""Most parts into which the partitions of one topic are split."""


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
    consumer: Consumer,
    places: AbstractSet[PartitionKey],
    *,
    earliest: bool,
    timeout_s: float,
    in_parts: bool = False,
) -> tuple[dict[PartitionKey, Stored], str]:
    """Return the committed offset of each partition; without one, the beginning or the end of its log.

    Returns within `timeout_s`; `in_parts` as in `bound_offsets`.

    Returns:
        The offsets found, and the last problem; empty if there was none. Partitions of a silent coordinator or
        leader are missing, and those of all leaders unless they are asked in parts.
    """
    deadline_s = clock_s() + timeout_s
    committed, problem = committed_offsets(consumer, places, timeout_s=timeout_s)
    never = [key for key, found in committed.items() if found.offset < 0]
    left_s = max(deadline_s - clock_s(), 0.0)
    bounds, problem_of_bounds = bound_offsets(
        consumer, never, earliest=earliest, timeout_s=left_s, in_parts=in_parts
    )
    known = {key: found for key, found in committed.items() if found.offset >= 0}
    return {**known, **{key: Stored(offset) for key, offset in bounds.items()}}, problem_of_bounds or problem


def bound_offsets(
    consumer: Consumer,
    places: Collection[PartitionKey],
    *,
    earliest: bool,
    timeout_s: float,
    in_parts: bool = False,
) -> tuple[dict[PartitionKey, int], str]:
    """Return the first offset of each log, or the one after its last record; and the last problem.

    Returns within `timeout_s`. librdkafka returns nothing if one of the leaders that it asks is silent. Asked in parts,
    each with an equal share of the time, the others answer; leaders that are all slow may need the time as a whole.
    """
    deadline_s = clock_s() + timeout_s
    # The names of both for a reader are also the times that Kafka's ListOffsets takes for them.
    at = OFFSET_BEGINNING if earliest else OFFSET_END
    parts = _parts(places) if in_parts else [places]
    found: dict[PartitionKey, int] = {}
    problem = ""
    for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
        within_s = max(deadline_s - clock_s(), 0.0) / left
        answer, trouble = _asked(partial(consumer.offsets_for_times, timeout=within_s), _at(part, at))
        found |= {key: bound.offset for key, bound in answer.items()}
        problem = trouble or problem
    return found, problem


def _parts(places: Collection[PartitionKey]) -> list[Collection[PartitionKey]]:
    """Return partitions in parts that mostly have one leader, without asking who leads.

    librdkafka may put that question to the silent broker, and then does so again and again. Kafka deals out the leaders
    of a topic's partitions in turn, and most clusters have 3, 4, 6, 8 or 12 brokers.
    """
    found: dict[PartitionKey, list[PartitionKey]] = {}
    for topic, number in sorted(places):
        found.setdefault((topic, number % _MOST_PARTS), []).append((topic, number))
    return list(found.values())


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
