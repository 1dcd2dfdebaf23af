"""Source: whether this user can read the offsets topic now, according to the brokers.

Nothing is fetched: a broker's description of the topic includes this user's rights. A topic that brokers do not know is
hidden, or does not exist yet. Which of the two does not matter: coordinators know every commit either way.
"""

from concurrent.futures import Future
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, TopicDescription

from pipeline.kafka.asking import answer
from pipeline.kafka.topic_configs import OFFSETS_TOPIC

Question: TypeAlias = "Future[TopicDescription]"


def ask(admin: AdminClient, *, timeout_s: float) -> Question:
    """Ask without waiting for the answer.

    Raises:
        KafkaException: The client cannot ask.
    """
    asked = admin.describe_topics(
        TopicCollection([OFFSETS_TOPIC]), include_authorized_operations=True, request_timeout=timeout_s
    )
    question: Question = asked[OFFSETS_TOPIC]
    return question


def why_unreadable(question: Question, *, timeout_s: float) -> str | None:
    """Why this user cannot read the offsets topic; None if it can, or if the brokers do not report its rights.

    Args:
        question: As returned by `ask`.
        timeout_s: Seconds to wait for the answer.

    Raises:
        KafkaException: There is no answer.
    """
    try:
        found = answer(question, timeout_s)
    except KafkaException as failure:
        if failure.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return f"this user may not describe {OFFSETS_TOPIC}"
        if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return f"the brokers report no topic {OFFSETS_TOPIC}: it is hidden, or no group has committed yet"
        raise
    allowed = found.authorized_operations
    if allowed is not None and AclOperation.READ not in allowed:
        return f"this user may describe {OFFSETS_TOPIC} but not read it"
    return None
