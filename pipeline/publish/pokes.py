"""Pokes: brokers are made to assign the KIP-848 groups for which a plan was published, beside the batches.

A plan is no reason for a broker to assign a group. So, where the configuration says so, a process joins the group for a
moment (`kafka.poke`): once for each plan, not too often for a group, and a few at a time. No batch waits for one, and
one that fails costs nothing but time: the plan is taken when members or topics change next.
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
"""By then a process ends itself; twice that is for its start on a busy machine."""
_LEAST_APART_S = 30.0
_AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Poke:
    """A group whose broker is to assign it, for the plan of this epoch."""

    group_id: str
    epoch: int
    members: tuple[str, ...]
    """Those that the plan gives partitions."""
    valid_until_ms: int
    """Of the plan."""


Ask = Callable[[poke.Question], poke.Outcome | None]
"""Pokes, and says what came of it; None where it ended before it could."""


class Pokes:
    """Carries pokes out, each plan's once."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        ask: Ask | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is contacted, and no thread is there, before the first poke.

        Args:
            properties: As `client.unresolved` gives them.
            ask: Carries one out; a process of its own if it is left out.
            clock_s: Goes forward only.
        """
        self._properties = properties
        self._ask = ask or _in_process
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._waiting: deque[Poke] = deque()
        self._running = 0
        self._newest: dict[str, tuple[int, float]] = {}

    def request(self, pokes: Iterable[Poke]) -> None:
        """Have them carried out; returns at once."""
        with self._lock:
            self._waiting.extend(one for one in pokes if self._is_due(one))
            while self._waiting and self._running < _AT_ONCE:
                threading.Thread(target=self._work, name="lagwise-poke", daemon=True).start()
                self._running += 1

    def _is_due(self, wanted: Poke) -> bool:
        """Whether it is the first one for the plan, and the last one of the group is long enough ago."""
        epoch, at_s = self._newest.get(wanted.group_id, (-1, -_LEAST_APART_S))
        if wanted.epoch <= epoch:
            return False
        if self._clock_s() - at_s < _LEAST_APART_S:
            log.info(
                "the broker is not asked to assign the group again so soon",
                extra={"group": wanted.group_id, "epoch": wanted.epoch, "least_apart_s": _LEAST_APART_S},
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
            why = outcome.error if outcome is not None else "it ended before it could say why"
            log.warning(
                "the broker could not be made to assign the group: the plan waits until members or topics change",
                extra={**of_plan, **took, "error": why},
            )
        elif outcome.why_not is not None:
            log.info("the group was not joined", extra={**of_plan, **took, "why": outcome.why_not})
        else:
            log.info("the broker was made to assign the group", extra={**of_plan, **took})


def _in_process(question: poke.Question) -> poke.Outcome | None:
    # A session of its own: Ctrl-C at the driver's terminal ends the driver, and lets the member leave.
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
