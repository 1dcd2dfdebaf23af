"""The steps of one batch: the only module that joins them, in the order of the data.

A batch may run again after a crash, at any point. Then the logs deliver the same records, but the brokers no longer
answer the same log offsets. So the first committed write (`topic_offsets`) defines a batch: the records it
read, and its time. It writes nothing that was chosen from other tables than these (`replay.why_passed_over`). A
table that already holds the batch is read, not folded again, and later steps derive from stored tables only.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.run.batch.confirmation import confirm_rows, find_ghosts
from pipeline.run.batch.control_messages import store_control_messages
from pipeline.run.batch.groups import store_group_history, store_groups
from pipeline.run.batch.intake import Settled, settle
from pipeline.run.batch.lag import store_history, store_lag
from pipeline.run.batch.opening import Chosen, Outage, PassedOver, begin, read_source, settle_offset
from pipeline.run.batch.plans.evaluation import make_plans
from pipeline.run.batch.plans.history import record_decisions
from pipeline.run.batch.plans.late import send_late
from pipeline.run.batch.plans.publication import publish_plans
from pipeline.run.batch.quarantine import store_quarantine
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.run.batch.upkeep import maintain_tables
from pipeline.run.driver import Driver
from pipeline.run.health.monitor import Monitor
from pipeline.tables.stamp import Stamp

_Given = ParamSpec("_Given")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A batch that has completed all steps."""

    batch: Settled
    stamp: Stamp
    """Stamp of its write of `partition_lag`."""
    decisions: pa.Table | None
    """Its decisions, as `plan_state` holds them; None if it made none."""
    published: int
    """Control records sent."""
    seconds_by_step: Mapping[str, float]


Outcome: TypeAlias = Done | PassedOver | Outage


class Steps:
    """Calls the steps of one batch, measures their times, and reports to the monitor."""

    def __init__(self, monitor: Monitor) -> None:
        """No step was called yet."""
        self.seconds: dict[str, float] = {}
        self._monitor = monitor

    def __call__(self, step: Callable[_Given, _Value], *args: _Given.args, **kwargs: _Given.kwargs) -> _Value:
        """The value of the step, which the next ones take."""
        begun_s = time.monotonic()
        value = step(*args, **kwargs)
        self.seconds[step.__name__] = time.monotonic() - begun_s
        self._monitor.step_ended(step.__name__)
        return value


def run(
    driver: Driver, batch_id: int, frame: DataFrame, *, steps: Callable[[Monitor], Steps] = Steps
) -> Outcome:
    """Take one batch through the steps. Safe to run again with the same batch id.

    Args:
        driver: Driver that runs the batch.
        batch_id: Spark's number of the batch.
        frame: Rows that Spark's source reads; collected once.
        steps: Caller of the steps.
    """
    do = steps(driver.monitor)

    # Read: one job of Spark's.
    begun = do(begin, driver, batch_id)
    read = do(read_source, driver, batch_id, frame)
    chosen = do(settle_offset, driver, begun, read.offset)
    if not isinstance(chosen, Chosen):
        return chosen
    batch = do(settle, driver, read, chosen)
    ghosts = do(find_ghosts, batch)
    confirmed = do(confirm_rows, batch, ghosts)

    # Fold: a job for log offsets and one for lags; what control messages and group records change lies in between.
    topics = do(store_topic_offsets, batch)
    groups = do(store_group_history, batch, confirmed)
    do(store_groups, batch, groups)
    do(store_control_messages, batch)
    do(store_quarantine, batch)
    stamp = do(store_lag, batch, confirmed, topics)
    do(store_history, batch)

    # Decide: one job. What was decided before is on the topic first.
    do(send_late, batch)
    has_decided = do(make_plans, batch)

    # Commit: what was decided is read back, recorded and published.
    decisions = do(record_decisions, batch, has_decided=has_decided)
    published = do(publish_plans, batch, decisions)
    do(maintain_tables, batch)

    driver.replay.is_first = driver.replay.is_new_cluster = False
    driver.progress.stamp = stamp
    return Done(
        batch=batch, stamp=stamp, decisions=decisions, published=published, seconds_by_step=do.seconds
    )
