"""Sends what was written down and not sent: the driver was killed, or the control topic could not be written."""

import logging
from collections.abc import Mapping
from functools import partial

from pipeline.clock import now_ms
from pipeline.errors import BrokerUnavailableError, TopicMissingError
from pipeline.planning.memory import PlanMemory, WrittenPlan
from pipeline.planning.state import from_json
from pipeline.publish.outbox import EpochsInTopic
from pipeline.publish.read_back import newest_plans
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.publication import send
from pipeline.run.driver import Services

log = logging.getLogger(__name__)


def connect(services: Services, memory: PlanMemory) -> str | None:
    """Return why no plan can be published now; None if one can. With a new connection, learn what was not sent.

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


def send_late(batch: Settled) -> None:
    """Send the withdrawals of earlier batches; and their plans, once every order that might forbid one was read.

    Raises:
        AccessRefusedError: As `connect`, and its other errors.
    """
    services, memory = batch.services, batch.driver.memory
    if connect(services, memory) is not None:
        return
    has_orders = batch.stamp.held is None and not batch.is_replay
    due = {group: one for group, one in memory.unsent.items() if one.value is None or has_orders}
    if not due:
        return
    plans = _still_allowed(services, memory, due)
    try:
        is_sent = send(services, plans)
    except TopicMissingError:
        raise
    except BrokerUnavailableError as error:
        # A dry driver has said so when it tried last; another one says so when it connects again.
        log.debug("what was not sent cannot be sent now, either", extra={"error": str(error)})
        return
    memory.on_sent_late(due, plans if is_sent else {})


def _still_allowed(
    services: Services, memory: PlanMemory, due: Mapping[str, WrittenPlan]
) -> Mapping[str, WrittenPlan]:
    """What still holds, by the clock, the configuration, orders and its own state; a withdrawal always does."""
    if all(one.value is None for one in due.values()):
        return due
    orders, at_ms = services.store.arrow("orders", ["group_id", "paused", "pinned"]).to_pylist(), now_ms()
    # Pins may be newer than the plan, and a plan that moves what is pinned would be taken back at once.
    forbidden = {row["group_id"] for row in orders if row["paused"] or row["pinned"]}

    def holds(group_id: str, one: WrittenPlan) -> bool:
        own = services.config.plan.for_group(group_id)
        if own.exclude or own.dry_run is True or own.guards.pin or group_id in forbidden:
            return False
        if one.plan.valid_until_ms <= at_ms:
            return False
        plan = from_json(memory.states.get(group_id)).plan
        if plan is None or plan.epoch != one.plan.epoch:
            # A plan without moves has no state.
            return own.dry_run != "approve"
        return plan.status == "open" and (own.dry_run != "approve" or plan.approved_by is not None)

    return {group: one for group, one in due.items() if one.value is None or holds(group, one)}
