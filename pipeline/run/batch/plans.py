"""The last steps of a batch: decide about groups, write the decisions down, publish what was written."""

import logging
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.clock import now_ms
from pipeline.errors import BrokerUnavailableError
from pipeline.planning import step as plan
from pipeline.planning.memory import PlanMemory, PlanRecord, WrittenPlan
from pipeline.planning.rows import kept
from pipeline.publish.outbox import EpochsInTopic
from pipeline.publish.read_back import decisions_of, newest_plans
from pipeline.run.batch.decisions import decide_all
from pipeline.run.batch.writes import write
from pipeline.run.driver import Batch
from pipeline.run.services import Services
from pipeline.tables.store import Store

log = logging.getLogger(__name__)


def make_plans(batch: Batch) -> None:
    """Evaluate every group, when a plan is due, and write down what was decided.

    A group that has taken a plan and was rebalanced since, or that an operator wants a plan for, does not wait.
    """
    services, memory = batch.services, batch.driver.memory
    is_due = _is_plan_due(batch)
    only = None if is_due else _urgent(batch)
    if "plan_state" in batch.written or only == ():
        return
    settings = plan.PlanSettings(
        cluster=services.cluster,
        config=services.config.plan,
        half_life_ms=services.config.rates.half_life_s * 1000,
        max_record_bytes=services.configs.max_record_bytes,
        at_ms=batch.clock.at_ms,
        # What a batch that runs again decides anew was never sent.
        now_ms=max(now_ms(), batch.clock.at_ms),
        batch_id=batch.batch_id,
        provisional_reason=batch.clock.reason,
        behind=batch.clock.behind,
        held=batch.clock.held or why_unpublishable(services, memory),
        migration=services.migration(),
    )
    options = services.config.tables.storage_options
    _store(batch, decide_all(batch.driver.spark, services.store, options, settings, memory, only=only))
    if is_due:
        memory.evaluated_at_ms = batch.clock.at_ms


def _store(batch: Batch, decided: pa.Table) -> None:
    """Write down what was decided, and with it whether it is to be recorded; the rest is taken from there."""
    store, cluster = batch.services.store, batch.services.cluster
    keep_days = batch.services.config.history.keep_days
    rates = kept.member_rates(decided, cluster=cluster)
    write(batch, "member_rates", kept.merged(store.arrow("member_rates"), rates, keep_days=keep_days))
    before = store.arrow("plan_state")
    newest = kept.newest_decisions(before, decided, cluster=cluster)
    write(batch, "plan_state", kept.merged(before, newest, keep_days=keep_days))


def _urgent(batch: Batch) -> tuple[str, ...]:
    """Groups to decide about before the others' turn."""
    memory, urgent = batch.driver.memory, set[str]()
    if batch.services.is_once or batch.clock.behind or batch.clock.held:
        return ()
    if batch.summary.orders:
        urgent |= set(batch.decoded.kind("orders")["group_id"].to_pylist())
    if batch.summary.group_records and memory.states:
        seen = batch.decoded.kind("group").select(["group_id", "generation", "position"]).sort_by("position")
        urgent |= memory.rebalanced({row["group_id"]: row["generation"] for row in seen.to_pylist()})
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
    plans, to_send = newest_plans(partial(services.store.arrow, "recommendations"), now_ms=now_ms())
    # What is in the table counts as published until the topic can be read.
    memory.on_published(plans)
    return memory.on_connected(epochs_in_topic(), to_send)


def record_decisions(batch: Batch) -> None:
    """Append to the history what of the batch's decisions differs from those before."""
    if "plan_state" not in batch.written:
        return
    store = batch.services.store
    batch.decisions = _decisions_at(store, batch.clock.at_ms)
    due = kept.history(batch.decisions)
    if batch.driver.replay.is_first:
        due = _unrecorded(store, due, batch.clock.at_ms)
    if due.num_rows:
        write(batch, "recommendations", due)


def record_left_decisions(store: Store) -> None:
    """Append what a driver that died between two writes has left, whether or not its batch runs again."""
    newest, recorded = store.stamp("plan_state"), store.stamp("recommendations")
    if newest is None or (recorded is not None and recorded.at_ms >= newest.at_ms):
        return
    due = _unrecorded(store, kept.history(_decisions_at(store, newest.at_ms)), newest.at_ms)
    if due.num_rows:
        store.append_left("recommendations", due, newest)


def _decisions_at(store: Store, at_ms: int) -> pa.Table:
    """Rows of `schemas.PLAN_STATE` of the batch that had this clock."""
    return store.arrow("plan_state", where=pc.field("updated_at") == moment(at_ms))


def _unrecorded(store: Store, due: pa.Table, at_ms: int) -> pa.Table:
    """The rows that are not in the history, whatever the stamps say: those go with the log's retention."""
    there = store.arrow("recommendations", ["group_id"], where=pc.field("created_at") == moment(at_ms))
    return due.filter(pc.invert(pc.is_in(due["group_id"], value_set=there["group_id"].combine_chunks())))


def publish_plans(batch: Batch) -> None:
    """Send the plans that this batch wrote down, as read back; nothing else is ever published."""
    if batch.decisions is not None:
        decisions = decisions_of(batch.decisions)
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
        batch.driver.memory.on_published({group: one.plan for group, one in plans.items()})
        batch.published = len(plans)
