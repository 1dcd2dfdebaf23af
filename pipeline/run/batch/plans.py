"""The last steps of a batch: decide about groups, write the decisions down, publish what was written."""

import logging
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.clock import now_ms
from pipeline.errors import BrokerUnavailableError
from pipeline.fold.control_messages import control_messages_by_group
from pipeline.planning import step as plan
from pipeline.planning.memory import PlanMemory, PlanRecord, WrittenPlan
from pipeline.publish.outbox import EpochsInTopic
from pipeline.publish.read_back import read_decisions, read_newest_plans
from pipeline.run.batch.writes import handed_over, timestamp, write
from pipeline.run.driver import Batch, TableFacts
from pipeline.run.services import Services
from pipeline.tables.store import Store

log = logging.getLogger(__name__)


def make_plans(batch: Batch) -> None:
    """Evaluate every group, when a plan is due, and write down what was decided.

    A group that has taken a plan and was rebalanced since, or that an operator wants a plan for, does not wait.
    """
    services, store, memory = batch.services, batch.services.store, batch.driver.memory
    is_due = _is_plan_due(batch)
    only = None if is_due else _urgent(batch)
    if "recommendations" in batch.written or only == ():
        return
    plans = plan.make_plans(
        plan.Stored(
            groups=store.read("consumer_groups"),
            lags=store.read("partition_lag"),
            topic_offsets=store.read("topic_offsets"),
            control_messages=_control_messages(store, batch.driver.tables),
        ),
        plan.PlanSettings(
            cluster=services.cluster,
            config=services.config.plan,
            max_record_bytes=services.configs.max_record_bytes,
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            provisional_reason=batch.clock.reason,
            behind=batch.clock.behind,
            held=batch.clock.held or why_unpublishable(services, memory),
            only=only,
            migration=services.migration(),
        ),
        memory,
    )
    write(batch, "recommendations", plans)
    if is_due:
        memory.evaluated_at_ms = batch.clock.at_ms


def _control_messages(store: Store, tables: TableFacts) -> DataFrame | None:
    if not (tables.has_acks or tables.has_orders):
        return None
    return control_messages_by_group(store.read("acks"), store.read("orders"), handed_over(store))


def _urgent(batch: Batch) -> tuple[str, ...]:
    """Groups to decide about before the others' turn."""
    memory, urgent = batch.driver.memory, set[str]()
    if batch.services.is_once or batch.clock.behind or batch.clock.held:
        return ()
    if batch.summary.orders:
        urgent |= {row["group_id"] for row in batch.kind("orders").select("group_id").collect()}
    if batch.summary.group_records and memory.states:
        seen = batch.kind("group").select("group_id", "generation", "position").orderBy("position").collect()
        urgent |= memory.rebalanced({row["group_id"]: row["generation"] for row in seen})
    return tuple(sorted(urgent))


def _is_plan_due(batch: Batch) -> bool:
    services, clock = batch.services, batch.clock
    if services.is_once:
        return not clock.behind and not batch.is_replay
    interval_ms = services.config.plan.interval_s * 1000
    return batch.driver.memory.is_evaluation_due(clock.at_ms, interval_ms=interval_ms)


def why_unpublishable(services: Services, memory: PlanMemory) -> str | None:
    """Why no plan can be published now; None when one can.

    Raises:
        AccessRefusedError: This user may not use the transactional id, or read the topic.
        TopicMissingError: The control topic is gone.
    """
    return services.publisher.unavailable(partial(_unsent, services, memory))


def _unsent(services: Services, memory: PlanMemory, epochs_in_topic: EpochsInTopic) -> list[PlanRecord]:
    """Bring the memory of published plans up to date; plans that are written down and not on the topic come out."""
    written = read_newest_plans(services.store.read("recommendations"), cluster=services.cluster)
    # What is in the table counts as published until the topic can be read.
    memory.on_published(written)
    return memory.on_connected(epochs_in_topic(), written, now_ms=now_ms())


def publish_plans(batch: Batch) -> None:
    """Send what this batch wrote into `recommendations`; nothing else is ever published."""
    if "recommendations" in batch.written:
        rows = batch.services.store.read("recommendations").where(
            # Delta has statistics of batch_id: files of other batches are not opened.
            (F.col("batch_id") == batch.batch_id) & (F.col("created_at") == timestamp(batch.clock.at_ms))
        )
        decisions = read_decisions(rows)
        _publish(batch, decisions.plans)
        batch.driver.memory.states |= decisions.states


def _publish(batch: Batch, plans: Mapping[str, WrittenPlan]) -> None:
    try:
        batch.services.publisher.publish([one.record(group_id) for group_id, one in plans.items()])
    except BrokerUnavailableError as error:
        # Lag goes on being measured. They are sent as soon as the topic can be written, if they still hold.
        log.warning(
            "plans cannot be published now; they are sent later, while they are valid",
            extra={"error": str(error)},
        )
    else:
        batch.driver.memory.on_published(plans)
        batch.published = len(plans)
