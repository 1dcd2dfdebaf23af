"""Watches, while a query runs, whether `source.offsets = "auto"` would now choose the other source.

If so, the query ends between two batches, and the next one chooses again. Each batch has one source for all groups.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.kafka import offsets_topic

log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0


@final
class OffsetsWatch:
    """Asks the brokers every 10 s, and never waits for an answer."""

    def __init__(
        self,
        admin: AdminClient,
        *,
        is_read: bool,
        timeout_s: float,
        is_refused: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet.

        Args:
            admin: A client of the cluster; it must outlive this object.
            is_read: Whether the query reads the offsets topic.
            timeout_s: Timeout of each question.
            is_refused: See `offsets_topic.access`.
            now_s: A monotonic clock.
        """
        self._admin = admin
        self._is_read = is_read
        self._timeout_s = timeout_s
        self._is_refused = is_refused
        self._now_s = now_s
        self._due_s = now_s() + LOOK_EVERY_S
        self._question: offsets_topic.Question | None = None
        self._given_up_s = 0.0
        self._others = 0
        """Answers in a row that call for the other source."""

    def is_outdated(self) -> bool:
        """Whether the query should end so that the next one chooses again. Without an answer nothing changes."""
        question, now_s = self._question, self._now_s()
        if question is not None and (question.done() or now_s >= self._given_up_s):
            self._question, self._due_s = None, now_s + LOOK_EVERY_S
            if question.done():
                self._note(question)
        elif question is None and now_s >= self._due_s:
            # librdkafka has been seen not to end a question at its timeout.
            self._given_up_s = now_s + 2 * self._timeout_s
            with suppress(KafkaException):
                self._question = offsets_topic.ask(self._admin, timeout_s=self._timeout_s)
        return self._others >= offsets_topic.LOOKS

    def _note(self, question: offsets_topic.Question) -> None:
        try:
            access = offsets_topic.access(question, timeout_s=self._timeout_s, is_refused=self._is_refused)
        except KafkaException:
            return
        why = access.why_not
        self._others = self._others + 1 if (why is None) is not self._is_read else 0
        if self._others == offsets_topic.LOOKS:
            log.warning(
                "the offsets topic can be read again: the query restarts and reads it"
                if why is None
                else "the offsets topic can no longer be read: the query restarts and asks coordinators instead",
                extra={} if why is None else {"reason": why},
            )
