"""Source: whether this user can read the offsets topic now, as the brokers say it.

Nothing is fetched: a broker tells with the topic what this user may do there. A topic that no broker knows is hidden,
or is not made yet. Brokers do not tell the two apart, and nothing has to: either way coordinators know every commit.
"""

from concurrent.futures import Future
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, TopicDescription

from pipeline.kafka.asking import answer
from pipeline.kafka.topic_configs import OFFSETS_TOPIC

Question: TypeAlias = "Future[TopicDescription]"


def ask(admin: AdminClient, *, timeout_s: float) -> Question:
    """Ask, and wait for nothing.

    Raises:
        KafkaException: The client cannot ask.
    """
    asked = admin.describe_topics(
        TopicCollection([OFFSETS_TOPIC]), include_authorized_operations=True, request_timeout=timeout_s
    )
    question: Question = asked[OFFSETS_TOPIC]
    return question


def why_unreadable(question: Question, *, timeout_s: float) -> str | None:
    """Why this user cannot read the offsets topic; None where it can, also where the brokers do not say what it may do.

    Args:
        question: `ask`.
        timeout_s: Of the question.

    Raises:
        KafkaException: There is no answer.
    """
    try:
        found = answer(question, timeout_s)
    except KafkaException as failure:
        if failure.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return f"this user may not see {OFFSETS_TOPIC}"
        if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return f"the brokers know no topic {OFFSETS_TOPIC}: it is hidden, or nobody has committed yet"
        raise
    allowed = found.authorized_operations
    if allowed is not None and AclOperation.READ not in allowed:
        return f"this user may see {OFFSETS_TOPIC}, and not read it"
    return None
