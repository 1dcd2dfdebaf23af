"""What one batch does: the only module that joins the steps, in the order in which the data flows.

A batch may run again after a crash, at any point. Then the logs deliver the same records, but the brokers no longer
answer the same log offsets. So a batch is what its first committed write (`topic_offsets`) says: which records it
read, and at what time. It writes nothing that was chosen from other tables than these (`replay.why_passed_over`). A
table that already holds the batch is read, not folded again, and later steps derive from stored tables only.
"""

import logging
import time
from collections.abc import Callable

from pipeline.run.batch.confirmation import confirm_rows
from pipeline.run.batch.control_messages import store_control_messages
from pipeline.run.batch.group_history import store_group_history
from pipeline.run.batch.groups import find_ghosts, store_groups
from pipeline.run.batch.intake import settle
from pipeline.run.batch.lag import store_history, store_lag
from pipeline.run.batch.opening import begin, read_source, settle_offset
from pipeline.run.batch.plans import make_plans, publish_plans, record_decisions
from pipeline.run.batch.quarantine import store_quarantine
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.run.driver import Batch
from pipeline.tables import maintenance
from pipeline.tables.storage import trouble_of

log = logging.getLogger(__name__)


def maintain_tables(batch: Batch) -> None:
    """Compact, expire and clean, now and then."""
    config, store = batch.services.config, batch.services.store
    every = config.tables.upkeep_every_batches
    if batch.batch_id % every == every - 1:
        try:
            maintenance.run(
                store.root,
                at_ms=batch.clock.at_ms,
                keep_days=config.history.keep_days,
                storage_options=store.storage_options,
            )
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            # The batch is stored and published; what was not cleaned up now is next time.
            log.exception("maintenance failed", extra={"tables_root": store.root})


Step = Callable[[Batch], None]

STEPS: tuple[Step, ...] = (
    begin,
    read_source,
    settle_offset,
    settle,
    find_ghosts,
    confirm_rows,
    store_topic_offsets,
    store_group_history,
    store_groups,
    store_control_messages,
    store_quarantine,
    store_lag,
    store_history,
    make_plans,
    record_decisions,
    publish_plans,
    maintain_tables,
)


def run(batch: Batch, steps: tuple[Step, ...] = STEPS) -> dict[str, float]:
    """Take one batch through the steps. Safe to run again with the same batch id.

    Returns:
        Seconds by step.
    """
    seconds: dict[str, float] = {}
    for step in steps:
        begun = time.monotonic()
        step(batch)
        seconds[step.__name__] = time.monotonic() - begun
        batch.driver.monitor.step_ended(step.__name__)
        if batch.is_skipped:
            return seconds
    batch.driver.replay.start = None
    batch.driver.progress.stamp = batch.clock
    return seconds
