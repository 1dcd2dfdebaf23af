"""Questions to brokers whose answers no batch depends on: waiting, asking again, and which outcome is news.

A question has one of three outcomes: an answer; a refusal, because this user lacks a right that an administrator may
grant some day; or silence, which may end in a second.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pipeline.kafka.errors import FORBIDDEN, RIGHTS

Outcome: TypeAlias = Literal["known", "refused", "silent"]
Entries: TypeAlias = Mapping[str, Any]
"""The configuration of a topic or broker: entries with a `value`, by name."""

UNASKABLE = "the client cannot describe a group of this name"
"""Why there is no answer about a group that `can_be_asked` denies."""
_GRACE_S = 5.0
_Answer = TypeVar("_Answer")


def answer(future: "Future[_Answer]", timeout_s: float) -> _Answer:
    """The answer to a request with librdkafka's timeout `timeout_s`.

    Raises:
        KafkaException: There is none, or librdkafka did not end the request in time.
    """
    try:
        return future.result(timeout_s + _GRACE_S)
    except FutureTimeoutError as late:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from late


def can_be_asked(group: str) -> bool:
    """Return whether librdkafka supports this group id; Kafka itself accepts every id.

    librdkafka takes ids as C strings: it cuts an id at a NUL character and asks about another group. A consumer with an
    empty id aborts its process when it fetches commits.
    """
    return bool(group) and "\0" not in group


def describe(
    admin: AdminClient, kind: ResourceType, names: Iterable[str], *, timeout_s: float
) -> dict[str, "Future[Entries]"]:
    """Request the configuration of these topics or brokers with one call.

    Raises:
        KafkaException: The client cannot ask.
    """
    asked = admin.describe_configs([ConfigResource(kind, name) for name in names], request_timeout=timeout_s)
    return {resource.name: future for resource, future in asked.items()}


def values_of(entries: Entries, names: Iterable[str]) -> dict[str, str]:
    """Values of these names that the brokers return; a default never stands in for one."""
    found = {name: entries[name].value for name in names if name in entries}
    return {name: str(value) for name, value in found.items() if value is not None}


def outcome_of(failure: BaseException) -> Outcome:
    """Outcome of a failed question: refused or silent."""
    is_refusal = isinstance(failure, KafkaException) and failure.args[0].code() in FORBIDDEN
    return "refused" if is_refusal else "silent"


def in_words(failure: KafkaException) -> str:
    """Why a question failed; for a missing right, also the document that lists the rights."""
    hint = f" ({RIGHTS})" if outcome_of(failure) == "refused" else ""
    return f"{failure.args[0].str()}{hint}"


def allow(right: str) -> str:
    """Remedy for a missing right."""
    return f"allow {right} ({RIGHTS})"


class Asked:
    """Outcomes of questions: when to ask each again, and whether an outcome is news."""

    def __init__(
        self,
        again_after_s: Mapping[Outcome, float] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it without any question.

        Args:
            again_after_s: Time until a question with this outcome is due again; other outcomes make it due at once.
            clock: A monotonic clock.
        """
        self._again_after_s = again_after_s or {}
        self._clock = clock
        self._outcomes: dict[str, Outcome] = {}
        self._due_s: dict[str, float] = {}

    def due(self, names: Iterable[str]) -> list[str]:
        """The due questions, the longest due first."""
        now_s = self._clock()
        due = sorted((self._due_s.get(name, -math.inf), name) for name in names)
        return [name for due_s, name in due if due_s <= now_s]

    def note(self, name: str, outcome: Outcome) -> Outcome | None:
        """Record the outcome of a question; return the previous one, or None for the first."""
        before = self._outcomes.get(name)
        self._outcomes[name] = outcome
        self._due_s[name] = self._clock() + self._again_after_s.get(outcome, 0.0)
        return before

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all other questions."""
        kept = set(names)
        self._outcomes = {name: one for name, one in self._outcomes.items() if name in kept}
        self._due_s = {name: due_s for name, due_s in self._due_s.items() if name in kept}

    @property
    def has_refusal(self) -> bool:
        """Whether any question is refused."""
        return "refused" in self._outcomes.values()
