"""The clock of a batch: plans and their epochs are only as right as it is, so it is held against the newest known."""

import logging
import time

from pipeline.arrow_columns import moment
from pipeline.clock import duration
from pipeline.planning.memory import PlanMemory
from pipeline.run.driver import ReadProgress

log = logging.getLogger(__name__)

_TOLERATED_MS = 5_000
"""Clocks of two hosts of which each has been the driver's may differ by so much."""
_LOGGED_EVERY_S = 3600
_LAST_S = 253_402_300_799
"""Of the year 9999, the last of which times can be written."""


def behind_tables(here_ms: int, newest_ms: int) -> str | None:
    """Why the times of a batch cannot be measured; None when they can.

    Args:
        here_ms: This host's clock.
        newest_ms: Clock of the newest batch in the tables.
    """
    if newest_ms - here_ms <= _TOLERATED_MS:
        return None
    return (
        f"{_clocks(here_ms, 'the newest batch in the tables', newest_ms)}; until this one has passed that time, ages "
        "and rates of lag are not right"
    )


def behind_plans(here_ms: int, memory: PlanMemory) -> str | None:
    """Why no plan can be made under an epoch that this host's clock gives; None when one can.

    Args:
        here_ms: This host's clock.
        memory: Of the plans in the tables and on the control topic.
    """
    group, epoch = memory.newest_epoch or ("", 0)
    if epoch * 1000 - here_ms <= _TOLERATED_MS:
        return None
    what = f"epoch {epoch} of group {group} in recommendations or on the control topic"
    clocks = _clocks(here_ms, what, min(epoch, _LAST_S) * 1000)
    return f"{clocks}; until this one has passed that time, an epoch could be used twice"


def _clocks(here_ms: int, what: str, newest_ms: int) -> str:
    here, newest = (f"{moment(at_ms).as_py():%Y-%m-%d %H:%M:%S}Z" for at_ms in (here_ms, newest_ms))
    return (
        f"this host's clock says {here}, and {what} is of {newest}, {duration(newest_ms - here_ms)} later: one of the "
        "two clocks was wrong. Set this host's clock; if it is right, see `A clock that was ahead` in the runbook"
    )


def say_behind(progress: ReadProgress, why: str) -> None:
    """Log it, once an hour."""
    now_s = time.monotonic()
    if now_s - progress.clock_logged_s < _LOGGED_EVERY_S:
        return
    progress.clock_logged_s = now_s
    log.warning("the clock is behind what is stored, and no plan is made", extra={"reason": why})
