"""Sends what was written down and not sent: the driver was killed, or the control topic could not be written."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from assignor.errors import DecodeError
from assignor.protocol.control import decode
from pipeline.clock import now_ms
from pipeline.config.model import GroupSettings
from pipeline.errors import BrokerUnavailableError, TopicMissingError
from pipeline.planning.life.pokes import is_for_broker
from pipeline.planning.memory import PlanMemory, WrittenPlan
from pipeline.planning.state import from_json
from pipeline.publish.outbox import PlansInTopic
from pipeline.publish.read_back import newest_plans
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.publication import send
from pipeline.run.batch.plans.shared_members import shared_members
from pipeline.run.driver import Services

_APART_S = 60


def connect(services: Services, memory: PlanMemory) -> str | None:
    """Return why no plan can be published now; None if one can. With a new connection, learn what was not sent.

    Raises:
        AccessRefusedError: This user may not use the transactional id, or read the topic.
        TopicMissingError: The control topic is gone.
        FencedError: A driver of other tables publishes for the cluster.
    """

    def on_connected(plans_in_topic: PlansInTopic) -> None:
        found = newest_plans(partial(services.store.arrow, "recommendations"), now_ms=now_ms())
        # Until the topic can be read, plans in the table count as published.
        memory.on_published(found.plans)
        memory.on_connected(plans_in_topic(), found.to_send)

    return services.publisher.unavailable(on_connected)


def send_late(batch: Settled) -> None:
    """Send the withdrawals of earlier batches; and their plans, once every order that might forbid one was read.

    Raises:
        AccessRefusedError: As `connect`, and its other errors.
    """
    services, memory = batch.services, batch.driver.memory
    if connect(services, memory) is not None:
        return
    acks_of, held_acks = services.filters.control_topics.acks_of, batch.stamp.held_acks
    has_orders = batch.stamp.held is None and not batch.is_replay
    due = {
        group: one
        for group, one in memory.unsent.items()
        if one.value is None or (has_orders and acks_of(group) not in held_acks)
    }
    if not due:
        return
    plans = _still_allowed(services, memory, due)
    try:
        is_sent = send(services, plans)
    except TopicMissingError:
        raise
    except BrokerUnavailableError:
        # The publisher has said why, and tries again half a minute later.
        return
    memory.on_sent_late(due, plans if is_sent else {})


def _still_allowed(
    services: Services, memory: PlanMemory, due: Mapping[str, WrittenPlan]
) -> Mapping[str, WrittenPlan]:
    """The plans that clock, configuration, orders and state of the group still allow, and all withdrawals."""
    if all(one.value is None for one in due.values()):
        return due
    columns = ["group_id", "paused", "pinned", "resumed_at"]
    orders = {row["group_id"]: row for row in services.store.arrow("orders", columns).to_pylist()}
    mistakable = shared_members(services.store, services.config.plan)
    at_ms = now_ms()

    def holds(group_id: str, one: WrittenPlan) -> bool:
        own = services.config.plan.for_group(group_id)
        if own.exclude or own.dry_run is True or own.guards.pin or one.plan.valid_until_ms <= at_ms:
            return False
        if group_id in mistakable or not _has_reader(one.value, own):
            return False
        if group_id in orders and _forbids(orders[group_id], one):
            return False
        plan = from_json(memory.states.get(group_id)).plan
        if plan is None or plan.epoch != one.plan.epoch:
            # A plan without moves has no state.
            return own.dry_run != "approve"
        return plan.status == "open" and (own.dry_run != "approve" or plan.approved_by is not None)

    return {group: one for group, one in due.items() if one.value is None or holds(group, one)}


def _has_reader(value: str | None, own: GroupSettings) -> bool:
    """True if this version can read the plan, and a plan for a broker is for one that still follows the group's."""
    try:
        record = decode((value or "").encode())
    except DecodeError:
        # Another version wrote it, so nobody knows here whom it is for.
        return False
    return own.follow == "broker" or not is_for_broker(record)


def _forbids(order: Mapping[str, Any], written: WrittenPlan) -> bool:
    """True if the group is paused, was resumed after the plan was made, or has pins, which may be newer than the plan.

    An epoch is the time of its plan, by the driver's clock; the operator's may differ.
    """
    if order["paused"] or order["pinned"]:
        return True
    resumed = order["resumed_at"]
    return resumed is not None and resumed.timestamp() > written.plan.epoch - _APART_S
