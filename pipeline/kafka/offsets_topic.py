"""Source: whether this user can read the offsets topic now, according to the brokers.

Nothing is fetched: a broker's description of the topic includes this user's rights. A topic that brokers do not know is
hidden or does not exist yet; either way, coordinators know every commit.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, TopicDescription

from pipeline.kafka.asking import answer
from pipeline.kafka.topic_configs import OFFSETS_TOPIC

Question: TypeAlias = "Future[TopicDescription]"

LOOKS = 2
"""Answers in a row without which the topic is not given up: a broker may have just started, or not know a right yet."""
_BETWEEN_LOOKS_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """This user's access to the offsets topic, according to brokers."""

    why_not: str | None = None
    """Why it cannot read the topic; None if it can, or may be able to."""
    is_reported: bool = True
    """Whether brokers report this user's rights; if not, only reading the topic shows them."""


def ask(admin: AdminClient, *, timeout_s: float) -> Question:
    """Send the request without waiting for the answer.

    Raises:
        KafkaException: The client cannot ask.
    """
    asked = admin.describe_topics(
        TopicCollection([OFFSETS_TOPIC]), include_authorized_operations=True, request_timeout=timeout_s
    )
    question: Question = asked[OFFSETS_TOPIC]
    return question


def access_now(admin: AdminClient, *, timeout_s: float, is_refused: bool) -> Access:
    """Ask up to `LOOKS` times; return the first answer by which the topic may be readable, or the last one.

    It waits for answers, and between them.

    Raises:
        KafkaException: There is no answer.
    """
    for look in range(LOOKS):
        if look:
            time.sleep(_BETWEEN_LOOKS_S)
        question = ask(admin, timeout_s=timeout_s)
        found = access(question, timeout_s=timeout_s, is_refused=is_refused)
        if found.why_not is None:
            break
    return found


def access(question: Question, *, timeout_s: float, is_refused: bool) -> Access:
    """Wait for the brokers' answer and read this user's access from it.

    `is_refused` (this user was refused when it read the topic) counts only if brokers do not report rights.

    Raises:
        KafkaException: There is no answer.
    """
    try:
        found = answer(question, timeout_s)
    except KafkaException as failure:
        if failure.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return Access(why_not=f"this user may not describe {OFFSETS_TOPIC}")
        if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            why = f"the brokers report no topic {OFFSETS_TOPIC}: it is hidden, or no group has committed yet"
            return Access(why_not=why)
        raise
    # The client's annotations leave None out.
    allowed: Sequence[object] | None = found.authorized_operations
    if allowed is None:
        why = f"this user was refused when it read {OFFSETS_TOPIC}, and the brokers do not report its rights"
        return Access(why_not=why if is_refused else None, is_reported=False)
    if AclOperation.READ not in allowed:
        return Access(why_not=f"this user may describe {OFFSETS_TOPIC} but not read it")
    return Access()
