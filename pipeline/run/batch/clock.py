"""The clock of a batch: what is due at it, and whether it is behind the newest known time.

Plans and their epochs depend on the clock, so it is compared with the times that are stored.
"""

import logging
import time

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.clock import duration
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.planning.memory import PlanMemory
from pipeline.run.driver import ReadProgress
from pipeline.tables.stamp import Stamp

log = logging.getLogger(__name__)

_TOLERATED_MS = 5_000
"""The clocks of two hosts that were both the driver's may differ by this much."""
_APART_MS = 180_000
"""More than a transaction takes by default, whose commits are read when it ends, and than reading may be late."""
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


def why_apart(commits: pa.Table, stamp: Stamp, before: Stamp | None) -> str | None:
    """Return why a coordinator's clock, which dates commits, and this host's are apart; None if no commit shows it.

    Whatever is read of a partition that was read to its end before was written since. While this host's clock is known
    to be wrong, it proves nothing about others.

    Args:
        commits: Commits of the batch, as decoded rows.
        stamp: Stamp of the batch.
        before: Stamp of the batch before; None without one.
    """
    if stamp.is_clock_behind or (before is not None and before.is_clock_behind):
        return None
    dated = commits.filter(pc.greater(commits["commit_timestamp_ms"], 0))
    newest = dated.group_by("offsets_partition").aggregate([("commit_timestamp_ms", "max")])
    for number, commit_ms in sorted(zip(*newest.to_pydict().values(), strict=True)):
        is_ahead = commit_ms > stamp.at_ms
        apart_ms = commit_ms - stamp.at_ms if is_ahead else _since(number, stamp, before) - commit_ms
        if apart_ms > _APART_MS:
            return (
                f"the clock of a broker is at least {duration(apart_ms)} {'ahead of' if is_ahead else 'behind'} this "
                f"host's, by the newest commit in partition {number} of {OFFSETS_TOPIC}: STOP, AT-COMMIT and the pace "
                "of commits may be wrong until the clocks agree"
            )
    return None


def _since(number: int, stamp: Stamp, before: Stamp | None) -> int:
    """Return a time before all commits that the batch has read of the partition; 0 if there is none."""
    key = (OFFSETS_TOPIC, number)
    position = (before.positions or {}).get(key) if before is not None else None
    if before is None or position is None or key in (*before.reread, *stamp.reread):
        return 0
    return before.at_ms if position.at_end_ms == before.at_ms else 0


def say_behind(progress: ReadProgress, why: str) -> None:
    """Log it, once an hour."""
    now_s = time.monotonic()
    if now_s - progress.clock_logged_s < _LOGGED_EVERY_S:
        return
    progress.clock_logged_s = now_s
    log.warning(
        "this host's clock is behind the stored times, so lagwise makes no plan", extra={"reason": why}
    )
