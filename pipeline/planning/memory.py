"""Memory: what decisions know of those before them, from batch to batch. Pure: others read tables and topics for it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.planning.state import from_json
from pipeline.planning.values import Published

_REMEMBERED_S = 3600
"""No control topic forgets a withdrawal sooner; `delete.retention.ms` is a day by default."""


class PlanRecord(NamedTuple):
    """A record of the control topic."""

    group_id: str
    epoch: int
    value: str | None
    """None withdraws the group's plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """A plan as it was written down, whether it was sent or not."""

    plan: Published
    value: str | None
    """See `PlanRecord`."""

    def record(self, group_id: str) -> PlanRecord:
        """What is sent to publish it."""
        return PlanRecord(group_id, self.plan.epoch, self.value)


@dataclass(slots=True, kw_only=True)
class PlanMemory:
    """The newest decision about each group, and when all groups were decided about."""

    published: dict[str, Published] = field(default_factory=dict)
    """Newest plan of each group on the control topic."""
    unseen_epochs: int = 0
    """How many epochs of any group may have been used without the tables; those that the topic has count there."""
    states: dict[str, str] = field(default_factory=dict)
    """Column `state` of each group's row of `plan_state`."""
    evaluated_at_ms: int = 0
    """Clock of the batch that began to decide about all groups last."""
    evaluated_at_s: float = math.inf
    """When that was, by a clock that only goes forward: that of the batches may stand still."""
    waiting: tuple[str, ...] = ()
    """Groups whose turn has not come since, in the order of their turns."""

    def is_evaluation_due(self, now_ms: int, *, interval_ms: int, now_s: float = -math.inf) -> bool:
        """Whether it is time, by one of the two clocks, to decide about all groups again."""
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

    def published_of(self, group_id: str) -> Published | None:
        """The newest plan of a group, if it is known that one was published or may have been."""
        unknown = _unknown_plan(self.unseen_epochs) if self.unseen_epochs else None
        return self.published.get(group_id, unknown)

    def not_overtaken(self, plans: Mapping[str, WrittenPlan]) -> Mapping[str, WrittenPlan]:
        """Those plans whose groups have no newer one; in restored tables a batch may run again long after it ran."""
        newest = {group: one.epoch for group, one in self.published.items()}
        return {group: one for group, one in plans.items() if one.plan.epoch >= newest.get(group, 0)}

    def on_published(self, plans: Mapping[str, Published]) -> None:
        """Remember plans as the newest of their groups."""
        self.published |= plans

    def _missing(self, epochs: Mapping[str, int]) -> int:
        """How many epochs of a group the control topic has beyond those of the table, at most."""
        plans = self.published
        known = {group: plans[group].epoch if group in plans else 0 for group in epochs}
        return max((last - known[group] for group, last in epochs.items()), default=0)

    def on_connected(self, epochs: Mapping[str, int], written: Mapping[str, WrittenPlan]) -> list[PlanRecord]:
        """Settle the highest epoch of each group: in the table and on the control topic, whichever is further.

        Of a plan that was withdrawn long ago the topic keeps nothing, and the table may have been a copy from before:
        then no epoch is taken that can have been used since. What the topic has now and the table has not counts as
        unseen from now on, since the topic will forget it.

        Args:
            epochs: Highest epoch of each group on the control topic.
            written: Newest plan of each group in the table, of those whose plan still holds.

        Returns:
            What is written down, still holds, and was never sent, by group: the broker was away when its turn came.
        """
        unsent: list[PlanRecord] = []
        self.unseen_epochs = max(self.unseen_epochs, self._missing(epochs))
        for group_id in sorted(epochs.keys() | self.published.keys()):
            known, last = self.published.get(group_id), epochs.get(group_id, 0)
            if known is None or known.epoch < last:
                # Published by a driver whose tables are gone: what readers hold is not what the table says, so a
                # new plan is due.
                self.published[group_id] = _unknown_plan(last)
            elif known.epoch > last:
                plan = written.get(group_id)
                if plan is not None and (plan.value is not None or group_id in epochs):
                    unsent.append(plan.record(group_id))
                else:
                    skipped = 0 if group_id in epochs else self.unseen_epochs
                    self.published[group_id] = _unknown_plan(known.epoch + skipped)
        return unsent


def epochs_within(seconds: float) -> int:
    """How many epochs of a group can have been used and forgotten by the control topic in so many seconds.

    What was withdrawn leaves the topic after its `delete.retention.ms`.
    """
    # No driver publishes more often than once a second.
    return math.ceil(seconds) if seconds > _REMEMBERED_S else 0


def _unknown_plan(epoch: int) -> Published:
    """A plan of which only the epoch counts: it equals none, and holds no longer."""
    return Published(epoch=epoch, target_hash="", base_hash="", valid_until_ms=0)
