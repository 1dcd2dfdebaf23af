"""The last step: tables are kept small in the time that is left until the next batch is due."""

from pipeline import clock
from pipeline.run.batch.intake import Settled
from pipeline.source.pace import due_after
from pipeline.tables.upkeep.maintenance import Kept

_FILLS = 6
"""In a round."""


def maintain_tables(batch: Settled) -> None:
    """Go on with the present round of maintenance, or begin one every `tables.upkeep_every_batches`.

    The batch is stored and published by now.
    """
    driver, config = batch.driver, batch.services.config
    number, every = batch.stamp.batch_id + 1, config.tables.upkeep_every_batches
    if number % every == 0:
        driver.maintenance.begin()
    elif number % max(1, every // _FILLS) == 0:
        driver.maintenance.begin_filling()
    driver.maintenance.work(
        Kept(store=batch.services.store, keep_days=config.history.keep_days),
        at_ms=batch.stamp.at_ms,
        spare_s=_spare_s(batch),
        begins=lambda doing: driver.monitor.does(f"maintain_tables ({doing})"),
    )


def _spare_s(batch: Settled) -> float:
    """Seconds until the next batch is due, as the source counts them: none while there is more to read."""
    progress, at_ms = batch.driver.progress, batch.stamp.at_ms
    interval_ms = batch.services.config.trigger.interval_s * 1000
    # A batch that was hurried was due when it began.
    progress.due_ms = due_after(min(progress.due_ms, at_ms), at_ms, interval_ms)
    if batch.intake.left and batch.has_read:
        return 0.0
    return (progress.due_ms - clock.now_ms()) / 1000
