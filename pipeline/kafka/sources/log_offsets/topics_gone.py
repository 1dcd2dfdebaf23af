"""Source: is a topic gone? Asked by its name, since a listing may be short.

A topic that no broker lists may be gone, or this user may have lost the right to describe it, or the broker that
was asked did not know of it yet. Only the answer that there is no such topic says that it is gone.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from pipeline.kafka.asking import answer
from pipeline.kafka.list_offsets.leaders import Leaders

_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the brokers say of topics by name; each topic is in one of the two."""

    remaining: Mapping[str, int] = field(default_factory=dict)
    """How many partitions the topic has, from 0 up; 0 for a topic that is gone."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """Why there is no answer."""


def confirm_gone(leaders: Leaders, topics: Sequence[str], *, timeout_s: float) -> Found:
    """What is left of each of the topics, as the brokers say when they are asked for it by name.

    Args:
        leaders: Whose client is used; a broker that does not answer is replaced by another.
        topics: Names that a complete listing did not contain, or not with all their partitions.
        timeout_s: How long that may take.
    """
    if not topics:
        return Found()

    def described(admin: AdminClient, left_s: float) -> dict[str, Future[TopicDescription]]:
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=left_s)
        for future in asked.values():
            # A question that failed as a whole has failed for each topic: another broker is asked.
            if _unanswered(future, left_s):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - public constant
        return asked

    try:
        asked = leaders.of_any_broker(described, timeout_s=timeout_s)
    except KafkaException as error:
        why = f"missing from the brokers' list of topics, and asking for it by name failed: {error.args[0].str()}"
        return Found(unconfirmed=dict.fromkeys(topics, why))
    answers = {topic: _left(future) for topic, future in asked.items()}
    return Found(
        remaining={topic: answer for topic, answer in answers.items() if isinstance(answer, int)},
        unconfirmed={topic: answer for topic, answer in answers.items() if isinstance(answer, str)},
    )


def _unanswered(future: Future[TopicDescription], timeout_s: float) -> bool:
    try:
        answer(future, timeout_s)
    except KafkaException as error:
        return error.args[0].code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}  # noqa: SLF001 - public constants
    return False


def _left(future: Future[TopicDescription]) -> int | str:
    try:
        return len(future.result().partitions)
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
    if error.code() in _GONE:
        return 0
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return f"this user may not describe the topic any more: {error.str()}"
    return f"missing from the brokers' list of topics, and asking for it by name failed: {error.str()}"
