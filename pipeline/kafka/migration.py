"""Whether the brokers would migrate a classic group online: `group.consumer.migration.policy` of each (KIP-848).

Any broker can become the coordinator of a group, so every broker that the cluster lists is asked, and one that would
migrate groups is enough. A broker that is down coordinates no group, and is not listed.
"""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ResourceType

from assignor.protocol.migration import POLICY, Migration
from pipeline.kafka.asking import Asked, Entries, Outcome, answer, describe, in_words

log = logging.getLogger(__name__)

# A broker reads the property at its start, which takes longer than this; a request takes 40 ms. An unknown policy is
# soon requested again, so that one lost answer does not cost a group its plan.
_AGAIN_AFTER_S: Mapping[Outcome, float] = {"known": 30.0, "silent": 5.0}
# A batch waits for it at most twice: for the list of brokers, and for the answers, which are requested together.
_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer of one broker."""

    policy: str | None = None
    """The policy in lower case; None from a broker without the property, which is older than migration."""
    problem: str | None = None
    """Why the policy is unknown; None if it is known."""


def classified(answers: Mapping[int, Answer]) -> Migration:
    """The conclusion from the answers of all listed brokers, by broker id; unknown without a list."""
    if any(answer.policy not in {None, "disabled"} for answer in answers.values()):
        return "possible"
    if not answers or any(answer.problem is not None for answer in answers.values()):
        return "unknown"
    return "disabled"


def answer_of(properties: Entries) -> Answer:
    """The answer in a broker's properties."""
    if not properties:
        return Answer(problem="the broker returns no property at all")
    if POLICY not in properties:
        return Answer()
    value = properties[POLICY].value
    # Kafka ignores its case.
    return (
        Answer(policy=value.strip().lower())
        if value
        else Answer(problem="the broker does not disclose its value")
    )


class MigrationWatch:
    """Asks now and then, when called, and returns what is known. A call never raises."""

    def __init__(self, admin: AdminClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing yet."""
        self._admin = admin
        self._asked = Asked(_AGAIN_AFTER_S, clock=clock)
        self._answers: Mapping[int, Answer] | None = None

    def __call__(self) -> Migration:
        """The newest answer, which is at most half a minute old."""
        if self._answers is None or self._asked.due([POLICY]):
            answers, problem = self._ask()
            found = classified(answers)
            if answers != self._answers:
                _report(found, answers, problem)
            self._answers = answers
            self._asked.note(POLICY, "silent" if found == "unknown" else "known")
        return classified(self._answers)

    def _ask(self) -> tuple[dict[int, Answer], str | None]:
        """The answer of each broker; or none, and why there is no list of brokers."""
        try:
            nodes = answer(self._admin.describe_cluster(request_timeout=_TIMEOUT_S), _TIMEOUT_S).nodes
            asked = {node.id: self._describe(str(node.id)) for node in nodes}
        except KafkaException as failure:
            return {}, in_words(failure)
        return {broker: _answer(future) for broker, future in asked.items()}, None

    def _describe(self, broker: str) -> "Future[Entries]":
        # One call per broker: each goes to the broker that it is about.
        return describe(self._admin, ResourceType.BROKER, [broker], timeout_s=_TIMEOUT_S)[broker]


def _answer(future: "Future[Entries]") -> Answer:
    try:
        return answer_of(answer(future, _TIMEOUT_S))
    except KafkaException as failure:
        return Answer(problem=in_words(failure))


def _report(found: Migration, answers: Mapping[int, Answer], problem: str | None) -> None:
    if found == "unknown":
        problems = {broker: answer.problem for broker, answer in answers.items() if answer.problem}
        log.warning(
            "migration to KIP-848 is unknown: followers of confluent-kafka refuse plans until it is known",
            extra={"property": POLICY, "problem": problem or problems},
        )
        return
    policies = {
        broker: answer.policy or answer.problem or "no such property" for broker, answer in answers.items()
    }
    words = {
        "disabled": "no broker migrates groups to KIP-848: followers of confluent-kafka take plans",
        "possible": "brokers migrate groups to KIP-848: followers of confluent-kafka refuse plans; to have them "
        f"taken, set {POLICY}=disabled on every broker",
    }
    log.info(words[found], extra={"property": POLICY, "brokers": policies})
