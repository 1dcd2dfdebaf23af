"""When a query should end because brokers now call for the other source of commits."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from pipeline.run.offsets_watch import LOOK_EVERY_S, OffsetsWatch

HIDDEN = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT))
READABLE = SimpleNamespace(authorized_operations=[AclOperation.READ])
UNREPORTED = SimpleNamespace(authorized_operations=None)
NEVER = object()


class Brokers:
    """Answers to successive questions; each look advances the clock by ten seconds."""

    def __init__(self, *answers: Any) -> None:
        self._answers = [*answers]
        self.now_s = 0.0

    def describe_topics(self, topics: Any, **_how: Any) -> dict[str, "Future[Any]"]:
        future: Future[Any] = Future()
        answer = self._answers.pop(0)
        if isinstance(answer, KafkaException):
            future.set_exception(answer)
        elif answer is not NEVER:
            future.set_result(answer)
        return dict.fromkeys(topics.topic_names, future)

    def outdated_after(self, *, is_read: bool, is_refused: bool = False) -> int | None:
        """How many answers it takes until the query is outdated; None if it never is."""
        admin: Any = self
        watch = OffsetsWatch(
            admin, is_read=is_read, timeout_s=5, is_refused=is_refused, now_s=lambda: self.now_s
        )
        asked = len(self._answers)
        while not watch.is_outdated():
            if not self._answers and watch._question is None:
                return None
            self.now_s += LOOK_EVERY_S
        return asked - len(self._answers)


@pytest.mark.parametrize(
    ("is_read", "answers", "after"),
    [
        (True, (HIDDEN, HIDDEN), 2),
        (False, (READABLE, READABLE), 2),
        (True, (READABLE,) * 3, None),
        (False, (HIDDEN,) * 3, None),
        (True, (HIDDEN, READABLE, HIDDEN), None),
        (True, (HIDDEN, SILENT, HIDDEN), 3),
        (True, (SILENT,) * 3, None),
        (False, (NEVER, READABLE, READABLE), 3),
    ],
    ids=["hidden", "readable", "as before", "as hidden as before", "for a moment", "silence", "away", "lost"],
)
def test_query_is_outdated_once_two_answers_in_a_row_speak_for_the_other_source(
    is_read: bool, answers: tuple[Any, ...], after: int | None
) -> None:
    assert Brokers(*answers).outdated_after(is_read=is_read) == after


def test_topic_that_was_refused_is_not_taken_again_before_brokers_report_the_right() -> None:
    assert Brokers(UNREPORTED, UNREPORTED).outdated_after(is_read=False) == 2
    assert Brokers(*[UNREPORTED] * 3).outdated_after(is_read=False, is_refused=True) is None
    assert Brokers(READABLE, READABLE).outdated_after(is_read=False, is_refused=True) == 2


def test_nobody_is_asked_before_it_is_time() -> None:
    admin: Any = Brokers()
    watch = OffsetsWatch(admin, is_read=True, timeout_s=5, now_s=lambda: LOOK_EVERY_S / 2)

    assert not watch.is_outdated()
    assert not watch.is_outdated()
