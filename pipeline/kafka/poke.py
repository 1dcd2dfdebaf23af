"""One poke: a member that reads nothing joins a KIP-848 group and leaves, so that the broker reassigns the group.

It runs in a process of its own (`command`), with a question as JSON on stdin and its outcome as JSON on stdout, so that
a crash or a hang of librdkafka does not reach the driver. The process ends at its deadline, whatever it is doing; the
group's session timeout then removes the member.

A join creates a group that is gone, and converts a classic one; Kafka has no request that joins only an existing group.
So the process asks the coordinator right before: it joins only a KIP-848 group with the members that the plan needs.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from pipeline.child_python import module_command
from pipeline.kafka.asking import answer, can_be_asked, in_words
from pipeline.kafka.client import resolve
from pipeline.kafka.poke_member import CLIENT_ID, NOTHING, is_poke
from pipeline.kafka.tokens import ready
from pipeline.poke_reasons import NOT_KIP848, OTHER_MEMBERS

_POLL_S = 0.05
_LOOK_EVERY_S = 0.1
_GONE = "the group is gone"
_NOBODY = {
    ConsumerGroupState.DEAD: _GONE,
    ConsumerGroupState.EMPTY: "the group has no member any more",
}
_OF_CLASSIC_MEMBERS = (
    "group.instance.id",
    "group.protocol.type",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
"""Consumer properties that this member must not have, or that librdkafka accepts only from classic members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a poke needs to know."""

    properties: Mapping[str, str]
    """As `client.unresolved` returns them."""
    group_id: str
    members: tuple[str, ...]
    """Members that the plan needs; if one is missing, the group is not joined."""
    deadline_s: int
    """Seconds after which the process ends, whatever it is doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of a poke."""

    why_not: str | None = None
    """Why the group was not joined; None if it was."""
    error: str | None = None
    """What went wrong; None if nothing did."""


_CUT_OFF = Outcome(
    why_not="the member of a poke that was cut off is still in the group: the broker reassigns the group when it "
    "removes that member"
)


def command() -> list[str]:
    """Command line of the process."""
    return module_command("pipeline.kafka.poke")


def encode(question: Question) -> str:
    """The question as text."""
    return json.dumps(asdict(question))


def outcome_of(text: str) -> Outcome | None:
    """The outcome that the process has written; None if it ended without one."""
    try:
        return Outcome(**json.loads(text))
    except (ValueError, TypeError):
        return None


def refusal(found: ConsumerGroupDescription | KafkaException, members: Collection[str]) -> Outcome | None:
    """Why the group is not joined, by its coordinator's description or error; None if it may be."""
    if isinstance(found, KafkaException):
        if found.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return Outcome(why_not=_GONE)
        return Outcome(error=f"the coordinator did not describe the group: {in_words(found)}")
    if found.state in _NOBODY:
        return Outcome(why_not=_NOBODY[found.state])
    if found.type != ConsumerGroupType.CONSUMER:
        return Outcome(why_not=NOT_KIP848)
    if not set(members) <= {one.member_id for one in found.members}:
        return Outcome(why_not=OTHER_MEMBERS)
    is_cut_off = any(
        is_poke(one.client_id, reads_nothing=not one.assignment.topic_partitions) for one in found.members
    )
    return _CUT_OFF if is_cut_off else None


def poke(question: Question) -> Outcome:
    """Join and leave, if `refusal` finds nothing against it."""
    if not can_be_asked(question.group_id):
        return Outcome(error="Kafka's client cannot join a group of this name")
    properties = resolve(question.properties)
    timeout_s = question.deadline_s / 5
    try:
        admin = AdminClient(ready(properties))
        # Created before the group is described, so that it looks up the coordinator in the meantime.
        consumer = Consumer(ready(_consumer_properties(properties, question.group_id)))
    except KafkaException as failure:
        return Outcome(error=in_words(failure))

    def described() -> ConsumerGroupDescription | KafkaException:
        asked = admin.describe_consumer_groups([question.group_id], request_timeout=timeout_s)
        try:
            found: ConsumerGroupDescription = answer(asked[question.group_id], timeout_s)
        except KafkaException as failure:
            return failure
        return found

    try:
        refused = refusal(described(), question.members)
        return refused or _joined_and_left(consumer, described, until_s=time.monotonic() + timeout_s)
    finally:
        with suppress(KafkaException):
            consumer.close()


def _joined_and_left(
    consumer: Consumer,
    described: Callable[[], ConsumerGroupDescription | KafkaException],
    *,
    until_s: float,
) -> Outcome:
    """Join, and return the outcome. The caller closes the consumer, which makes it leave."""
    try:
        consumer.subscribe([NOTHING])
        looked_at_s = 0.0
        while time.monotonic() < until_s:
            message = consumer.poll(_POLL_S)
            error = message.error() if message is not None else None
            # A broker's refusal is final; a lost connection may come back.
            if error is not None and error.code() > 0 and not error.retriable():
                return Outcome(error=in_words(KafkaException(error)))
            if time.monotonic() - looked_at_s >= _LOOK_EVERY_S:
                if _is_in(described(), consumer.memberid()):
                    return Outcome()
                looked_at_s = time.monotonic()
    except KafkaException as failure:
        return Outcome(error=in_words(failure))
    return Outcome(error="the coordinator did not admit the member in time")


def _is_in(found: ConsumerGroupDescription | KafkaException, member_id: str | None) -> bool:
    # By its id: one of another poke that was killed may be there until its session ends.
    return not isinstance(found, KafkaException) and any(one.member_id == member_id for one in found.members)


def _consumer_properties(properties: Mapping[str, Any], group_id: str) -> dict[str, Any]:
    kept = {name: value for name, value in properties.items() if name not in _OF_CLASSIC_MEMBERS}
    return {
        **kept,
        "client.id": CLIENT_ID,
        "group.id": group_id,
        "group.protocol": "consumer",
        "enable.auto.commit": "false",
        "allow.auto.create.topics": "false",
    }


def main() -> None:
    """Answer one question."""
    given = json.load(sys.stdin)
    question = Question(**{**given, "members": tuple(given["members"])})
    # The default action of SIGALRM ends the process even if a call into librdkafka never returns.
    signal.setitimer(signal.ITIMER_REAL, question.deadline_s)
    outcome = poke(question)
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
