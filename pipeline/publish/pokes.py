"""Pokes: make brokers reassign the KIP-848 groups for which a plan was published, alongside the batches.

A published plan does not make a broker reassign a group. If the configuration asks for it, a process joins the group
for a moment (`kafka.poke`): once for each plan, at most once in 30 s for a group, two groups at a time. No batch waits
for a poke. If one fails, the broker takes the plan at the next change of members or topics.
"""

import logging
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipeline.clock import now_ms
from pipeline.kafka import poke

log = logging.getLogger(__name__)

_DEADLINE_S = 15
"""The process ends itself after this. It is killed after twice this, which allows for a slow start."""
_MIN_INTERVAL_S = 30.0
_MAX_RUNNING = 2


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
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start nothing: threads and processes start with the first poke.

        Args:
            properties: As `client.unresolved` returns them.
            ask: Carries out one poke; by default a separate process.
            clock_s: A monotonic clock.
        """
        self._properties = properties
        self._ask = ask or _in_process
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._waiting: deque[Poke] = deque()
        self._running = 0
        self._newest: dict[str, tuple[int, float]] = {}

    def request(self, pokes: Iterable[Poke]) -> None:
        """Queue pokes and return at once."""
        with self._lock:
            self._waiting.extend(one for one in pokes if self._is_due(one))
            while self._waiting and self._running < _MAX_RUNNING:
                threading.Thread(target=self._work, name="lagwise-poke", daemon=True).start()
                self._running += 1

    def _is_due(self, wanted: Poke) -> bool:
        """Whether this is the plan's first poke and the group's last one is long enough ago."""
        epoch, at_s = self._newest.get(wanted.group_id, (-1, -_MIN_INTERVAL_S))
        if wanted.epoch <= epoch:
            return False
        if self._clock_s() - at_s < _MIN_INTERVAL_S:
            log.info(
                "the group was poked a moment ago, so it is not poked again: the plan waits until members or topics "
                "change",
                extra={"group": wanted.group_id, "epoch": wanted.epoch, "min_interval_s": _MIN_INTERVAL_S},
            )
            return False
        self._newest[wanted.group_id] = wanted.epoch, self._clock_s()
        return True

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                wanted = self._waiting.popleft()
                is_newest = self._newest[wanted.group_id][0] == wanted.epoch
            if is_newest and now_ms() < wanted.valid_until_ms:
                self._carry_out(wanted)

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
    # A session of its own, so that Ctrl-C at the driver's terminal does not kill it before its member has left.
    done = subprocess.run(
        poke.command(),
        input=poke.encode(question),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=2 * question.deadline_s,
        text=True,
        check=False,
        start_new_session=True,
    )
    return poke.outcome_of(done.stdout)
