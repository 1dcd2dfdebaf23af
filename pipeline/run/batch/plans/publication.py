"""Publishes the plans that a batch wrote down."""

import logging
from collections.abc import Mapping

import pyarrow as pa

from pipeline.errors import BrokerUnavailableError
from pipeline.planning.memory import WrittenPlan
from pipeline.publish.read_back import decisions_of
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
        # Orders may have come since. A batch that has read them sends what they allow (`late`).
        memory.on_replayed(plans)
        return 0
    try:
        is_sent = send(batch.services, plans)
    except BrokerUnavailableError as error:
        # Lag goes on being measured. They are sent as soon as the topic can be written, if they still hold.
        log.warning(
            "plans cannot be published now; they are sent later, while they are valid",
            extra={"error": str(error)},
        )
        memory.on_unsent(plans)
        return 0
    memory.on_published({group: one.plan for group, one in plans.items()})
    return len(plans) if is_sent else 0


def send(services: Services, plans: Mapping[str, WrittenPlan]) -> bool:
    """Send plans in one transaction, and poke their groups; False if another driver publishes for the cluster.

    Raises:
        BrokerUnavailableError: As `Publisher.publish`, and its other errors.
    """
    records = [one.record(group_id) for group_id, one in sorted(plans.items())]
    if not services.publisher.publish(records):
        return False
    poke_groups(services, records)
    return True
