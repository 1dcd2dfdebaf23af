"""Pokes the groups whose plans were just published, so that their brokers take the plans."""

import logging
from collections.abc import Iterable, Iterator, Mapping

import pyarrow.compute as pc

from assignor.errors import DecodeError
from assignor.protocol.control import decode
from pipeline.clock import now_ms
from pipeline.planning.life.pokes import GROUP_COLUMNS, is_for_broker, readers, why_not
from pipeline.planning.memory import PlanRecord
from pipeline.publish.pokes import Poke
from pipeline.run.driver import Services

log = logging.getLogger(__name__)


def poke_groups(services: Services, published: Iterable[PlanRecord]) -> None:
    """Request a poke of each of these groups that is configured for it. The batch does not wait for the outcome.

    A poke that is still queued for one of the others is dropped: it is for an earlier plan, or its plan was withdrawn.

    Args:
        services: Services of the driver that published the plans.
        published: The newest plan of each group.
    """
    config = services.config.plan
    values = {one.group_id: one.value for one in published if config.for_group(one.group_id).poke}
    if not values:
        return
    wanted = {group_id: value for group_id, value in values.items() if value is not None}
    due = list(_due(services, wanted)) if wanted else []
    services.pokes.forget(values.keys() - {one.group_id for one in due})
    services.pokes.request(due)


def _due(services: Services, values: Mapping[str, str]) -> Iterator[Poke]:
    stored = services.store.arrow(
        "consumer_groups", list(GROUP_COLUMNS), pc.field("group_id").isin(list(values))
    )
    groups = {row["group_id"]: row for row in stored.to_pylist()}
    for group_id, value in values.items():
        try:
            record = decode(value.encode())
        except DecodeError:  # another version wrote it, and a repeated batch has found it
            continue
        if not is_for_broker(record):
            continue
        why = why_not(groups.get(group_id), record, now_ms=now_ms())
        if why is not None:
            log.info(
                "the group was not poked",
                extra={"group": group_id, "epoch": record.epoch, "why": why},
            )
            continue
        yield Poke(
            group_id=group_id,
            epoch=record.epoch,
            members=tuple(sorted(readers(record))),
            valid_until_ms=record.valid_until_ms,
        )
