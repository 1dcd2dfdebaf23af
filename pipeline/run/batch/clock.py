"""The clock of a batch: what is due at it, and whether it is behind the newest known time.

Plans and their epochs depend on the clock, so it is compared with the times that are stored.
"""

import logging
import time

from pipeline.arrow_columns import moment
from pipeline.clock import duration
from pipeline.planning.memory import PlanMemory
from pipeline.run.driver import ReadProgress

log = logging.getLogger(__name__)

_TOLERATED_MS = 5_000
"""The clocks of two hosts that were both the driver's may differ by this much."""
_LOGGED_EVERY_S = 3600
_LAST_S = 253_402_300_799
"""In the year 9999, the last one that times can be written in."""


def due_after_ms(interval_s: int, *, batch_interval_s: int) -> int:
    """The time after which something with this interval is due at a batch.

    Batches begin up to half a second after they are due, since Spark polls the source, or later on a busy machine. So
    every other one comes a little less than a whole interval after the last. The batch nearest to the interval counts;
    otherwise what is due each minute would often wait for the batch after it.
    """
    return interval_s * 1000 - min(interval_s, batch_interval_s) * 500


def trouble(here_ms: int, newest_ms: int, memory: PlanMemory) -> str | None:
    """Return why no plan can be made at the time of this host's clock; None if one can.

    Args:
        here_ms: This host's clock.
        newest_ms: Clock of the newest batch in the tables.
        memory: Plans in the tables and on the control topic.
    """
    group, epoch = memory.newest_epoch or ("", 0)
    plan = f"epoch {epoch} of group {group} in recommendations or on the control topic"
    for what, at_ms, then in (
        ("the newest batch in the tables", newest_ms, "ages and rates of lag are wrong"),
        (plan, min(epoch, _LAST_S) * 1000, "an epoch could be used twice"),
    ):
        if at_ms - here_ms > _TOLERATED_MS:
            here, newest = (f"{moment(one).as_py():%Y-%m-%d %H:%M:%S}Z" for one in (here_ms, at_ms))
            return (
                f"this host's clock says {here}, but {what} is dated {newest}, {duration(at_ms - here_ms)} later: "
                f"one of the two clocks was wrong, and until this one has passed that time, {then}; set this host's "
                "clock, or see `A clock that was ahead` in the runbook if it is right"
            )
    return None


def say_behind(progress: ReadProgress, why: str) -> None:
    """Log it, once an hour."""
    now_s = time.monotonic()
    if now_s - progress.clock_logged_s < _LOGGED_EVERY_S:
        return
    progress.clock_logged_s = now_s
    log.warning(
        "this host's clock is behind the stored times, so lagwise makes no plan", extra={"reason": why}
    )
