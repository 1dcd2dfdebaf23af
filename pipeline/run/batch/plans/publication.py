"""Publishes the plans that were written down: those of this batch, and those that an earlier one could not send."""

import logging
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.clock import now_ms
from pipeline.errors import BrokerUnavailableError
from pipeline.planning.memory import PlanMemory, PlanRecord, WrittenPlan
from pipeline.planning.state import from_json
from pipeline.publish.outbox import EpochsInTopic
from pipeline.publish.read_back import decisions_of, newest_plans
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.pokes import poke_groups
from pipeline.run.driver import Services

log = logging.getLogger(__name__)


def publish_plans(batch: Settled, decided: pa.Table | None) -> int:
    """Send the plans that this batch wrote down, as read back, and nothing else; how many were sent comes out."""
    if decided is None:
        return 0
    decisions, memory = decisions_of(decided), batch.driver.memory
    # Before the plans are looked at: these states say which of them an operator has approved.
    memory.states |= decisions.states
    plans = memory.not_overtaken(decisions.plans)
    if batch.is_replay:
        plans = _still_allowed(batch.services, memory, plans)
    return _publish(batch, plans)


def _publish(batch: Settled, plans: Mapping[str, WrittenPlan]) -> int:
    records = [one.record(group_id) for group_id, one in plans.items()]
    try:
        batch.services.publisher.publish(records)
    except BrokerUnavailableError as error:
        # Lag goes on being measured. They are sent as soon as the topic can be written, if they still hold.
        log.warning(
            "plans cannot be published now; they are sent later, while they are valid",
            extra={"error": str(error)},
        )
        return 0
    batch.driver.memory.on_published({group: one.plan for group, one in plans.items()})
    poke_groups(batch.services, records)
    return len(plans)


def why_unpublishable(services: Services, memory: PlanMemory) -> str | None:
    """Return why no plan can be published now; None if one can.

    Raises:
        AccessRefusedError: This user may not use the transactional id, or read the topic.
        TopicMissingError: The control topic is gone.
    """
    late: list[PlanRecord] = []

    def unsent(epochs_in_topic: EpochsInTopic) -> list[PlanRecord]:
        late[:] = _unsent(services, memory, epochs_in_topic)
        return late

    why = services.publisher.unavailable(unsent)
    if why is None:
        poke_groups(services, late)
    return why


def _unsent(services: Services, memory: PlanMemory, epochs_in_topic: EpochsInTopic) -> list[PlanRecord]:
    """Bring the memory of published plans up to date; plans that are written down and not on the topic come out."""
    found = newest_plans(partial(services.store.arrow, "recommendations"), now_ms=now_ms())
    # What is in the table counts as published until the topic can be read.
    memory.on_published(found.plans)
    return memory.on_connected(epochs_in_topic(), _still_allowed(services, memory, found.to_send))


def _still_allowed(
    services: Services, memory: PlanMemory, plans: Mapping[str, WrittenPlan]
) -> Mapping[str, WrittenPlan]:
    """The plans, written down some time ago, that the configuration of now and orders allow; withdrawals always are."""
    if all(one.value is None for one in plans.values()):
        return plans
    paused = services.store.arrow("orders", ["group_id"], pc.field("paused"))["group_id"].to_pylist()

    def is_allowed(group_id: str, one: WrittenPlan) -> bool:
        own = services.config.plan.for_group(group_id)
        if own.exclude or own.dry_run is True or group_id in paused:
            return False
        return own.dry_run != "approve" or _is_approved(memory, group_id, one)

    return {
        group_id: one for group_id, one in plans.items() if one.value is None or is_allowed(group_id, one)
    }


def _is_approved(memory: PlanMemory, group_id: str, written: WrittenPlan) -> bool:
    plan = from_json(memory.states.get(group_id)).plan
    return plan is not None and plan.epoch == written.plan.epoch and plan.approved_by is not None
