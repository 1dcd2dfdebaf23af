"""Log lines of a follower when one of its topics cannot be used: one when that begins, and one when it ends."""

import logging

log = logging.getLogger(__name__)

PROBE_EVERY_S = 5.0
"""Interval at which a reader checks that its topic is still the same."""
FIRST_PROBE_AFTER_S = 1.0
"""The same after a reader has begun: metadata and the answer to the first fetch take a moment to come."""
RETRY_AFTER_S, RETRY_AT_MOST_S = 1.0, 8.0
"""Pause before a reader restarts after a problem; it doubles while the problem lasts, up to the second value."""


class Trouble:
    """A problem with one topic; meanwhile the group continues, and if it rebalances, `sticky` assigns.

    Args:
        topic: Name of the topic.
        group: Group id.
        task: What cannot be done, for log lines.
    """

    def __init__(self, *, topic: str, group: str, task: str) -> None:
        self._task = task
        self._about = {"topic": topic, "group": group}
        self._lasts = False

    def begins(self, problem: BaseException | str) -> None:
        """Log the problem, unless it is already known."""
        if not self._lasts:
            self._lasts = True
            text = problem if isinstance(problem, str) else f"{type(problem).__name__}: {problem}"
            log.warning(
                "%s; consuming continues, and lagwise retries until it succeeds",
                self._task,
                extra={**self._about, "problem": text},
            )
            log.debug(
                "traceback of the problem", exc_info=problem if isinstance(problem, BaseException) else None
            )

    def ends(self) -> None:
        """Note that it works, and log that if it did not before."""
        if self._lasts:
            self._lasts = False
            log.info("resolved: %s", self._task, extra=self._about)


def reading(topic: str, group: str) -> Trouble:
    """Trouble with reading a control topic."""
    return Trouble(topic=topic, group=group, task="the control topic cannot be read")


def acknowledging(topic: str, group: str) -> Trouble:
    """Trouble with writing to an acks topic."""
    return Trouble(topic=topic, group=group, task="an acknowledgement cannot be sent")


def steering(topic: str, group: str) -> Trouble:
    """Trouble of a member with the plan that it has read."""
    return Trouble(topic=topic, group=group, task="the group cannot be asked to rebalance for its plan")


class ControlTopicError(Exception):
    """The control topic does not exist, or was recreated; it is read again from its beginning."""


def not_there(topic: str) -> ControlTopicError:
    """The error to raise if the topic does not exist."""
    return ControlTopicError(f"topic {topic} does not exist; the stream creates it when it starts")


def made_again(topic: str) -> ControlTopicError:
    """The error to raise if the topic was recreated or truncated."""
    return ControlTopicError(f"topic {topic} was recreated; it is read again from its beginning")
