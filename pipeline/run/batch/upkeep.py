"""The last step: tables are kept small in the time that is left until the next batch is due."""

from pipeline import clock
from pipeline.run.batch.intake import Settled
from pipeline.tables.maintenance import Kept

_FILLS = 6
"""In a round."""


def maintain_tables(batch: Settled) -> None:
    """Go on with the present round of maintenance, or begin one every `tables.upkeep_every_batches`.

    The batch is stored and published by now.
    """
    driver, config, store = batch.driver, batch.services.config, batch.services.store
    number, every = batch.stamp.batch_id + 1, config.tables.upkeep_every_batches
    if number % every == 0:
        driver.maintenance.begin()
    elif number % max(1, every // _FILLS) == 0:
        driver.maintenance.begin_filling()
    driver.maintenance.work(
        Kept(root=store.root, keep_days=config.history.keep_days, storage_options=store.storage_options),
        at_ms=batch.stamp.at_ms,
        spare_s=_spare_s(batch),
        begins=lambda doing: driver.monitor.does(f"maintain_tables ({doing})"),
    )


def _spare_s(batch: Settled) -> float:
    """Until the next batch is due: at once while there is more to read, otherwise an interval after this one was.

    One that came late is due an interval after its own time, as the source counts it (`source.planner.Pace`).
    """
    progress, at_ms = batch.driver.progress, batch.stamp.at_ms
    interval_ms = batch.services.config.trigger.interval_s * 1000
    due_ms = min(progress.due_ms, at_ms) if at_ms - progress.due_ms < interval_ms else at_ms
    progress.due_ms = due_ms + interval_ms
    if batch.intake.left and batch.has_read:
        return 0.0
    return (progress.due_ms - clock.now_ms()) / 1000
