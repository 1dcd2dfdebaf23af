"""Publishes the plans that were written down: those of this batch, and those that an earlier one could not send."""

import logging
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.clock import now_ms
from pipeline.errors import BrokerUnavailableError
from pipeline.planning.memory import PlanMemory, WrittenPlan
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
    memory.states |= decisions.states
    plans = memory.not_overtaken(decisions.plans)
    if batch.is_replay:
        # Orders may have come since. The next batch reads them, and then sends what they allow.
        memory.on_replayed(plans)
        return 0
    try:
        _send(batch.services, plans)
    except BrokerUnavailableError as error:
        # Lag goes on being measured. They are sent as soon as the topic can be written, if they still hold.
        log.warning(
            "plans cannot be published now; they are sent later, while they are valid",
            extra={"error": str(error)},
        )
        return 0
    memory.on_published({group: one.plan for group, one in plans.items()})
    return len(plans)


def connect(services: Services, memory: PlanMemory) -> str | None:
    """Return why no plan can be published now; None if one can. With a new connection, learn what is on the topic.

    Raises:
        AccessRefusedError: This user may not use the transactional id, or read the topic.
        TopicMissingError: The control topic is gone.
        FencedError: A driver of other tables publishes for the cluster.
    """

    def on_connected(epochs_in_topic: EpochsInTopic) -> None:
        found = newest_plans(partial(services.store.arrow, "recommendations"), now_ms=now_ms())
        # What is in the table counts as published until the topic can be read.
        memory.on_published(found.plans)
        memory.on_connected(epochs_in_topic(), found.to_send)

    return services.publisher.unavailable(on_connected)


def why_unpublishable(services: Services, memory: PlanMemory) -> str | None:
    """Return why no plan can be published now; None if one can, and all that was to be sent late has been.

    Call it where all orders have been read.

    Raises:
        AccessRefusedError: As `connect`; TopicMissingError and FencedError, too.
    """
    why = connect(services, memory)
    if why is not None or not memory.unsent:
        return why
    plans = _still_allowed(services, memory)
    try:
        _send(services, plans)
    except BrokerUnavailableError as error:
        log.warning("plans cannot be published now", extra={"error": str(error)})
        return f"plans cannot be published now: {error}"
    memory.on_sent_late(plans)
    return None


def _send(services: Services, plans: Mapping[str, WrittenPlan]) -> None:
    records = [one.record(group_id) for group_id, one in sorted(plans.items())]
    services.publisher.publish(records)
    poke_groups(services, records)


def _still_allowed(services: Services, memory: PlanMemory) -> Mapping[str, WrittenPlan]:
    """What is to be sent late and still holds, by the clock, the configuration and orders; a withdrawal always does."""
    paused = services.store.arrow("orders", ["group_id"], pc.field("paused"))["group_id"].to_pylist()
    at_ms = now_ms()

    def holds(group_id: str, one: WrittenPlan) -> bool:
        own = services.config.plan.for_group(group_id)
        if own.exclude or own.dry_run is True or group_id in paused or one.plan.valid_until_ms <= at_ms:
            return False
        return own.dry_run != "approve" or _is_approved(memory, group_id, one)

    return {group: one for group, one in memory.unsent.items() if one.value is None or holds(group, one)}


def _is_approved(memory: PlanMemory, group_id: str, written: WrittenPlan) -> bool:
    plan = from_json(memory.states.get(group_id)).plan
    return plan is not None and plan.epoch == written.plan.epoch and plan.approved_by is not None
