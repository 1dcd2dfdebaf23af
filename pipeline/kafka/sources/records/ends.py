"""Source: start and end offsets of the logs that the stream reads, requested before each batch."""

from collections.abc import Callable, Sequence

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.errors import AccessRefusedError, BrokerUnavailableError, OffsetsRefusedError
from pipeline.kafka.errors import error_of_call, explained, unusable
from pipeline.kafka.list_offsets.leaders import Leaders
from pipeline.kafka.list_offsets.question import LeaderAnswer, Question
from pipeline.kafka.positions import Answer, End, PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC

_ASKS = (
    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
)


class EndsAsker:
    """Asks before each batch; remembers leaders that did not answer."""

    def __init__(
        self, make_admin: Callable[[], AdminClient], topics: Sequence[str], *, timeout_s: float
    ) -> None:
        """Ask nothing yet."""
        self._topics = tuple(topics)
        self._timeout_s = timeout_s
        self._leaders = Leaders(make_admin, topics)

    def __call__(self) -> dict[PartitionKey, Answer]:
        """The answer of the leader of each partition of the topics, or why there is none.

        Raises:
            BrokerUnavailableError: No broker answered at all.
            TopicMissingError: One of the topics is gone.
            OffsetsRefusedError: This user may not read the offsets topic.
            AccessRefusedError: The cluster refuses this user, or the user may not read another of the topics.
        """
        with explained("the Kafka cluster cannot be used"):
            listed = self._leaders.relisted(timeout_s=self._timeout_s).topics
        for topic in self._topics:
            if (error := listed[topic].error) is not None:
                raise _named(topic, unusable(topic, error))
        wanted = [(topic, number) for topic in self._topics for number in sorted(listed[topic].partitions)]
        answers = Question(self._leaders, _ASKS, timeout_s=self._timeout_s).answers(wanted)
        return {key: _told(key, answers[key]) for key in wanted}


def _told(key: PartitionKey, answer: LeaderAnswer) -> Answer:
    if answer.refusal is not None:
        raise _named(key[0], error_of_call(f"topic {key[0]} cannot be read", answer.refusal))
    if answer.offsets is None:
        return str(answer.error)
    log_start, stable, high = answer.offsets
    return End(log_start=log_start, stable=stable, high=high)


def _named(
    topic: str, error: AccessRefusedError | BrokerUnavailableError
) -> AccessRefusedError | BrokerUnavailableError:
    """The error; a missing right to the offsets topic has a class of its own."""
    is_right = type(error) is AccessRefusedError  # A login that fails says nothing about rights.
    return OffsetsRefusedError(str(error)) if is_right and topic == OFFSETS_TOPIC else error
