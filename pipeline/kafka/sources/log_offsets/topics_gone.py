"""Source: topics that are gone, by requests for their names, since a listing may be incomplete.

A topic that no broker lists may be deleted, this user may have lost the right to describe it, or the broker may not
have known it yet. Only the answer that there is no such topic proves that it is gone.
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
    """Answers to requests for topics by name; each topic is in one of the two."""

    remaining: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions of the topic; 0 if it is gone."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """Why there is no answer."""


def confirm_gone(leaders: Leaders, topics: Sequence[str], *, timeout_s: float) -> Found:
    """What is left of each of these topics, by requests for their names.

    Args:
        leaders: Provides the client; a broker that does not answer is replaced by another.
        topics: Topics that a complete listing lacked, or listed without some of their partitions.
        timeout_s: Time for all requests.
    """
    if not topics:
        return Found()

    def described(admin: AdminClient, left_s: float) -> dict[str, Future[TopicDescription]]:
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=left_s)
        for future in asked.values():
            # A failed request fails for each of its topics: another broker is asked.
            if _unanswered(future, left_s):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
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
        return error.args[0].code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}
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
