"""The last step: tables are kept small in the time that is left until the next batch is due."""

import logging
from datetime import timedelta

import pyarrow.compute as pc

from pipeline import clock
from pipeline.run.batch.intake import Settled
from pipeline.source.pace import due_after
from pipeline.tables.upkeep.maintenance import Kept

log = logging.getLogger(__name__)

_ONE_DAY = timedelta(days=1)
_FILLS = 6
"""In a round."""


def maintain_tables(batch: Settled) -> None:
    """Go on with the present round of maintenance, or begin one every `tables.upkeep_every_batches`.

    The batch is stored and published by now. `--once` works off the whole round: no batch is late because of it, and no
    later one would go on with it.
    """
    driver, config = batch.driver, batch.services.config
    number, every = batch.stamp.batch_id + 1, config.tables.upkeep_every_batches
    if number % every == 0:
        driver.maintenance.begin(expires=_is_clock_vouched_for(batch))
    elif number % max(1, every // _FILLS) == 0:
        driver.maintenance.begin_filling()
    driver.maintenance.work(
        Kept(
            store=batch.services.store,
            keep_days=config.history.keep_days,
            is_dated=not config.source.asks_groups,
        ),
        at_ms=batch.stamp.at_ms,
        spare_s=_spare_s(batch),
        is_whole=batch.services.is_once,
        begins=lambda doing: driver.monitor.does(f"maintain_tables ({doing})"),
    )


def _is_clock_vouched_for(batch: Settled) -> bool:
    """True if some group's last commit, dated by a broker, is within a day of this host's clock.

    A clock that is ahead by weeks would delete the whole history. Where no group has committed for a day, or nothing
    says when it did, nothing expires. One commit with a date in the future takes nothing from what the others say.
    Coordinators date no commits: see `Kept.is_dated`.
    """
    if batch.services.config.source.asks_groups:
        return True
    store, now, committed = batch.services.store, clock.at(batch.stamp.at_ms), pc.field("commit_timestamp")
    if store.count("partition_lag", (committed > now - _ONE_DAY) & (committed < now + _ONE_DAY)):
        return True
    newest = pc.max(store.arrow("partition_lag", ["commit_timestamp"])["commit_timestamp"]).as_py()
    log.warning(
        "no old rows are deleted: no group has committed within a day of this host's clock",
        extra={"newest_commit": None if newest is None else f"{newest:%Y-%m-%d %H:%M:%SZ}"},
    )
    return False


def _spare_s(batch: Settled) -> float:
    """Seconds until the next batch is due, as the source counts them: none while there is more to read."""
    progress, at_ms = batch.driver.progress, batch.stamp.at_ms
    interval_ms = batch.services.config.trigger.interval_s * 1000
    # A batch that was hurried was due when it began.
    progress.due_ms = due_after(min(progress.due_ms, at_ms), at_ms, interval_ms)
    if batch.intake.left and batch.has_read:
        return 0.0
    return (progress.due_ms - clock.now_ms()) / 1000
