"""Pokes: make brokers reassign the KIP-848 groups for which a plan was published, alongside the batches.

A published plan does not make a broker reassign a group. If the configuration asks for it, a process joins the group
for a moment (`kafka.poke`): once for each plan, at most once in 30 s for a group, two groups at a time. A plan that
follows sooner waits for its turn, and only the newest plan of a group does. No batch waits for a poke. If one fails,
the broker takes the plan at the next change of members or topics.
"""

import logging
import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipeline.child_python import asked
from pipeline.clock import now_ms
from pipeline.kafka import poke

log = logging.getLogger(__name__)

_DEADLINE_S = 15
"""The process ends itself after this. It is killed after twice this, which allows for a slow start."""
_MIN_INTERVAL_S = 30.0
_MAX_RUNNING = 2
_FINISH_S = 60.0
"""Twice as long as the longest poke, and longer than a plan is put off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poke:
    """A group that its broker should reassign, so that it takes the plan of this epoch."""

    group_id: str
    epoch: int
    members: tuple[str, ...]
    """Members to which the plan gives partitions."""
    valid_until_ms: int
    """End of the plan's validity."""


Ask = Callable[[poke.Question], poke.Outcome | None]
"""Pokes and returns the outcome; None if the process ended without reporting one."""


class Pokes:
    """Pokes once for each plan."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        ask: Ask | None = None,
        min_interval_s: float = _MIN_INTERVAL_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start nothing: threads and processes start with the first poke.

        Args:
            properties: As `client.unresolved` returns them.
            ask: Carries out one poke; by default a separate process.
            min_interval_s: Time from one poke of a group to its next.
            clock_s: A monotonic clock.
        """
        self._properties = properties
        self._ask = ask or _in_process
        self._min_interval_s = min_interval_s
        self._clock_s = clock_s
        self._changed = threading.Condition()
        """Guards what follows, and is notified when it has changed."""
        self._waiting: dict[str, Poke] = {}
        """The newest poke of each group, in the order of their turns."""
        self._threads = 0
        self._newest_epoch: dict[str, int] = {}
        self._not_before_s: dict[str, float] = {}

    def request(self, pokes: Iterable[Poke]) -> None:
        """Queue pokes and return at once."""
        new = list(pokes)
        with self._changed:
            for one in new:
                self._queue(one)
            while self._waiting and self._threads < _MAX_RUNNING:
                threading.Thread(target=self._work, name="lagwise-poke", daemon=True).start()
                self._threads += 1
            self._changed.notify_all()

    def forget(self, group_ids: Iterable[str]) -> None:
        """Drop the queued pokes of these groups: their plans were withdrawn, or no longer call for one."""
        with self._changed:
            for group_id in group_ids:
                dropped = self._waiting.pop(group_id, None)
                if dropped is not None:
                    log.info(
                        "the group is not poked",
                        extra={"group": group_id, "epoch": dropped.epoch, "why": "the plan no longer holds"},
                    )
            self._changed.notify_all()

    def finish(self, *, within_s: float = _FINISH_S) -> None:
        """Wait until all requested pokes have ended, but no longer than this."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._threads == 0, within_s):
                log.warning(
                    "the driver ends before all groups were poked: the brokers of the others take their plans when "
                    "members or topics change",
                    extra={"waited_s": within_s, "groups": list(self._waiting)},
                )

    def _queue(self, wanted: Poke) -> None:
        group_id = wanted.group_id
        if wanted.epoch <= self._newest_epoch.get(group_id, -1):
            return
        self._newest_epoch[group_id] = wanted.epoch
        self._waiting[group_id] = wanted
        put_off_s = self._not_before_s.get(group_id, -math.inf) - self._clock_s()
        if put_off_s > 0:
            log.info(
                "the group was poked a moment ago, so it is poked for this plan a little later",
                extra={"group": group_id, "epoch": wanted.epoch, "in_s": round(put_off_s, 1)},
            )

    def _work(self) -> None:
        while (wanted := self._next()) is not None:
            self._carry_out(wanted)

    def _next(self) -> Poke | None:
        """The next poke, once it is due; None, and one thread less, when none is queued any more."""
        with self._changed:
            while self._waiting:
                now_s = self._clock_s()
                due_s = {name: max(now_s, self._not_before_s.get(name, now_s)) for name in self._waiting}
                group_id = min(due_s, key=due_s.__getitem__)
                if due_s[group_id] > now_s:
                    self._changed.wait(due_s[group_id] - now_s)
                    continue
                wanted = self._waiting.pop(group_id)
                if now_ms() < wanted.valid_until_ms:
                    self._not_before_s[group_id] = now_s + self._min_interval_s
                    return wanted
            self._threads -= 1
            self._changed.notify_all()
            return None

    def _carry_out(self, wanted: Poke) -> None:
        question = poke.Question(
            properties=self._properties,
            group_id=wanted.group_id,
            members=wanted.members,
            deadline_s=_DEADLINE_S,
        )
        of_plan = {"group": wanted.group_id, "epoch": wanted.epoch}
        begun_s = time.monotonic()
        try:
            outcome = self._ask(question)
        # ValueError: what it printed is no UTF-8.
        except (OSError, ValueError, subprocess.SubprocessError) as failure:
            outcome = poke.Outcome(error=str(failure))
        took = {"seconds": round(time.monotonic() - begun_s, 2)}
        if outcome is None or outcome.error is not None:
            why = outcome.error if outcome is not None else "the process ended without reporting a cause"
            log.warning(
                "the poke failed, so the broker has not taken the plan: it waits until members or topics change",
                extra={**of_plan, **took, "error": why},
            )
        elif outcome.why_not is not None:
            log.info("the group was not poked", extra={**of_plan, **took, "why": outcome.why_not})
        else:
            log.info("the group was poked", extra={**of_plan, **took})


def _in_process(question: poke.Question) -> poke.Outcome | None:
    done = asked(poke.command(), poke.encode(question), timeout_s=2 * question.deadline_s)
    return poke.outcome_of(done.stdout)
