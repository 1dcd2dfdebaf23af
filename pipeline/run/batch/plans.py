"""The last steps of a batch: decide about groups, write the decisions down, publish what was written."""

import logging

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.errors import BrokerUnavailableError
from pipeline.fold import control_messages as fold_talk
from pipeline.planning import step as plan
from pipeline.publish import outbox as publish
from pipeline.run.batch.writes import handed_over, timestamp, write
from pipeline.run.driver import Batch, Driver

log = logging.getLogger(__name__)


def make_plans(batch: Batch) -> None:
    """Evaluate every group, when a plan is due, and write down what was decided.

    A group that has taken a plan and was rebalanced since, or that an operator wants a plan for, does not wait.
    """
    driver = batch.driver
    is_due = _is_plan_due(batch)
    only = None if is_due else _urgent(batch)
    if "recommendations" in batch.written or only == ():
        return
    plans = plan.make_plans(
        plan.Stored(
            groups=driver.store.read("consumer_groups"),
            lags=driver.store.read("partition_lag"),
            topic_offsets=driver.store.read("topic_offsets"),
            talk=_talk(driver),
        ),
        plan.PlanSettings(
            cluster=driver.cluster,
            config=driver.config.plan,
            max_record_bytes=driver.configs.max_record_bytes,
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            provisional_reason=batch.clock.reason,
            behind=batch.clock.behind,
            held=batch.clock.held or driver.publisher.unavailable(driver.store.read("recommendations")),
            only=only,
            migration=driver.migration(),
        ),
        driver.publisher.published,
        driver.states,
    )
    write(batch, "recommendations", plans)
    if is_due:
        driver.plan_at_ms = batch.clock.at_ms


def _talk(driver: Driver) -> DataFrame | None:
    if not (driver.has_acks or driver.has_orders):
        return None
    acks, orders = driver.store.read("acks"), driver.store.read("orders")
    return fold_talk.talk_of_groups(acks, orders, handed_over(driver))


def _urgent(batch: Batch) -> tuple[str, ...]:
    """Groups to decide about before the others' turn."""
    driver, urgent = batch.driver, set[str]()
    if driver.once or batch.clock.behind or batch.clock.held:
        return ()
    if batch.summary.orders:
        urgent |= {row["group_id"] for row in batch.kind("orders").select("group_id").collect()}
    if batch.summary.group_records and driver.states:
        seen = batch.kind("group").select("group_id", "generation", "position").orderBy("position").collect()
        urgent |= set(plan.rebalanced(driver.states, {row["group_id"]: row["generation"] for row in seen}))
    return tuple(sorted(urgent))


def _is_plan_due(batch: Batch) -> bool:
    driver, clock = batch.driver, batch.clock
    if driver.once:
        return not clock.behind and not batch.is_replay
    return clock.at_ms - driver.plan_at_ms >= driver.config.plan.interval_s * 1000


def publish_plans(batch: Batch) -> None:
    """Send what this batch wrote into `recommendations`; nothing else is ever published."""
    driver = batch.driver
    if "recommendations" in batch.written:
        rows = driver.store.read("recommendations").where(
            # Delta has statistics of batch_id: files of other batches are not opened.
            (F.col("batch_id") == batch.batch_id) & (F.col("created_at") == timestamp(batch.clock.at_ms))
        )
        decisions = publish.decisions_of(rows)
        try:
            batch.published = driver.publisher.publish(decisions)
        except BrokerUnavailableError as error:
            # Lag goes on being measured. They are sent as soon as the topic can be written, if they still hold.
            log.warning(
                "plans cannot be published now; they are sent later, while they are valid",
                extra={"error": str(error)},
            )
        driver.states |= plan.states_of(decisions)
