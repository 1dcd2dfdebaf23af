"""Memory: what decisions know of those before them, from batch to batch. Pure: others read tables and topics for it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.planning.state import from_json
from pipeline.planning.values import Published


class PlanRecord(NamedTuple):
    """A record of the control topic."""

    group_id: str
    epoch: int
    value: str | None
    """None to withdraw the group's plan."""


class PlanInTopic(NamedTuple):
    """Newest plan of a group on the control topic."""

    epoch: int = 0
    """Highest epoch; 0 for a group without records."""
    valid_until_ms: int = 0
    """Validity of the plan with that epoch; 0 for a withdrawal, and for a value that no reader can use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """A plan as it was written down, whether it was sent or not."""

    plan: Published
    value: str | None
    """See `PlanRecord`."""

    def record(self, group_id: str) -> PlanRecord:
        """Return the record that publishes it."""
        return PlanRecord(group_id, self.plan.epoch, self.value)


@dataclass(slots=True, kw_only=True)
class PlanMemory:
    """The newest decision about each group, and when all groups were decided about."""

    published: dict[str, Published] = field(default_factory=dict)
    """Newest plan of each group on the control topic, or in `unsent`."""
    unsent: dict[str, WrittenPlan] = field(default_factory=dict)
    """Plans that the tables hold and the control topic does not, by group: the broker or the driver was away."""
    states: dict[str, str] = field(default_factory=dict)
    """Column `state` of each group's row of `plan_state`."""
    evaluated_at_ms: int = 0
    """Clock of the batch that began to decide about all groups last."""
    evaluated_at_s: float = math.inf
    """When that was, by a clock that only goes forward: that of the batches may stand still."""
    waiting: tuple[str, ...] = ()
    """Groups whose turn has not come since, in the order of their turns."""

    def is_evaluation_due(self, now_ms: int, *, interval_ms: int, now_s: float = -math.inf) -> bool:
        """Return whether an evaluation of all groups is due, by either clock."""
        return (
            now_ms - self.evaluated_at_ms >= interval_ms
            or (now_s - self.evaluated_at_s) * 1000 >= interval_ms
        )

    def keep_only(self, groups: Iterable[str]) -> None:
        """Forget the states of other groups than these, which the table no longer has."""
        self.states = {group: self.states[group] for group in groups if group in self.states}

    def rebalanced(self, generations: Mapping[str, int | None]) -> set[str]:
        """Groups that have taken a plan and are in another generation than it was made for.

        Args:
            generations: By group, of those that have new records.
        """
        return {group for group, generation in generations.items() if self._waits(group, generation)}

    def _waits(self, group_id: str, generation: int | None) -> bool:
        plan = from_json(self.states.get(group_id)).plan
        return plan is not None and plan.is_restored and generation not in {None, plan.base_generation}

    def not_overtaken(self, plans: Mapping[str, WrittenPlan]) -> Mapping[str, WrittenPlan]:
        """Return the plans whose groups have no newer one; with restored tables a batch may run again much later."""
        newest = {group: one.epoch for group, one in self.published.items()}
        return {group: one for group, one in plans.items() if one.plan.epoch >= newest.get(group, 0)}

    def on_published(self, plans: Mapping[str, Published]) -> None:
        """Remember plans as the newest of their groups; an older one is not sent any more."""
        self.published |= plans
        self.unsent = {group: one for group, one in self.unsent.items() if group not in plans}

    @property
    def newest_epoch(self) -> tuple[str, int] | None:
        """Group and epoch of the plan with the highest one; None before the first plan."""
        newest = max(self.published, key=lambda group: (self.published[group].epoch, group), default=None)
        return None if newest is None else (newest, self.published[newest].epoch)

    def on_replayed(self, plans: Mapping[str, WrittenPlan]) -> None:
        """Take in the plans of a batch that runs again, and queue those that were not sent."""
        self.on_unsent(
            {
                group: one
                for group, one in plans.items()
                if group not in self.published or self.published[group].epoch < one.plan.epoch
            }
        )

    def on_unsent(self, plans: Mapping[str, WrittenPlan]) -> None:
        """Remember plans that are written down and not sent."""
        self.published |= {group: one.plan for group, one in plans.items()}
        self.unsent |= plans

    def on_connected(self, in_topic: Mapping[str, PlanInTopic], written: Mapping[str, WrittenPlan]) -> None:
        """Settle the highest epoch of each group: in the table and on the control topic, whichever is further.

        Neither has to know all that were used: the next epoch is not below the clock (`values.next_epoch`).

        Args:
            in_topic: By group, of those that have records on the control topic.
            written: Newest plan of each group in the table, of those whose plan still holds.
        """
        self.unsent = {}
        for group_id in sorted(in_topic.keys() | self.published.keys()):
            known, last = self.published.get(group_id), in_topic.get(group_id, PlanInTopic())
            if known is None or known.epoch < last.epoch:
                # Published by a driver whose tables are gone: what readers hold is not what the table says, so a
                # new plan is due.
                self.published[group_id] = _unknown_plan(*last)
            elif known.epoch > last.epoch:
                plan = written.get(group_id)
                if plan is not None and (plan.value is not None or group_id in in_topic):
                    self.unsent[group_id] = plan
                else:
                    self.published[group_id] = _unknown_plan(known.epoch, last.valid_until_ms)

    def on_sent_late(self, due: Iterable[str], sent: Mapping[str, WrittenPlan]) -> None:
        """Settle what was to be sent late now: of these groups, these plans were; the others' are not wanted now."""
        for group_id in due:
            one = self.unsent.pop(group_id)
            # The topic may hold an earlier plan, which is valid no longer than the one that is dropped.
            dropped = _unknown_plan(one.plan.epoch, one.plan.valid_until_ms)
            self.published[group_id] = one.plan if group_id in sent else dropped


def _unknown_plan(epoch: int, valid_until_ms: int) -> Published:
    """Return a placeholder for a plan that readers may hold: it equals no other plan."""
    return Published(epoch=epoch, target_hash="", base_hash="", valid_until_ms=valid_until_ms)
