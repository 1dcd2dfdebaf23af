"""One group that can be planned, with everything that its decision depends on."""

from dataclasses import dataclass

from assignor.model.arrays import Bools, Floats
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.problem.capacity import Belief
from pipeline.planning.problem.measured import Measured
from pipeline.planning.record import to_sent, to_target
from pipeline.planning.state import GroupState
from pipeline.planning.values import Decision, Publication, Published, Sent, Target, Verdict, next_epoch

_TRIGGER_LIVES_MS = 600_000
"""An older trigger was meant for a driver that has ended since; a later one is of a clock that is ahead."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One group that can be planned, and everything that its decision depends on."""

    facts: GroupFacts
    rules: Rules
    group: Group
    beliefs: dict[str, Belief]
    """How fast members are taken to be, by member id; empty when nobody has shown anything."""
    seen: Measured
    """The group as its commits show it."""
    standing: frozenset[str]
    """See `group.Problem`."""
    resumed: frozenset[str]
    """See `group.Problem`."""
    cost: Floats | None
    """See `group.Problem`."""
    pinned: Bools
    """P entries: see `fixed.pinned`."""
    old: Bools
    """P entries: see `eligibility.old_offsets`."""
    why_old: str | None
    """See `eligibility.why_old`."""
    partitions: PartitionFacts
    published: Published | None
    now_ms: int

    def target(self, assignment: Assignment) -> Target:
        """The assignment by names."""
        return to_target(
            self.group, assignment, facts=self.facts, strategy=self.rules.strategy, lag=self.seen.backlog
        )

    def sent(self, target: Target) -> Sent:
        """What is sent to publish the target now.

        Raises:
            ControlRecordTooLargeError: See `record.to_sent`.
        """
        return to_sent(
            self.group,
            target,
            facts=self.facts,
            rules=self.rules,
            epoch=next_epoch(self.published, least=self.rules.least_epoch),
            now_ms=self.now_ms,
            lag=int(self.seen.backlog.sum()),
        )

    def publication(self, target: Target, sent: Sent, *, approved_by: str | None = None) -> Publication:
        """The target as it is sent, for the group in its generation."""
        return Publication(
            target=target,
            sent=sent,
            generation=self.facts.generation or 0,
            at_ms=self.now_ms,
            approved_by=approved_by,
        )

    def decision(
        self, state: GroupState, target: Target, verdict: Verdict, *, sent: Sent | None = None
    ) -> Decision:
        """The decision about the target."""
        return Decision(
            strategy=self.rules.strategy,
            base_generation=self.facts.generation,
            target=target,
            verdict=verdict,
            sent=sent,
            plan=state.plan,
            state=state,
        )

    def trigger(self, state: GroupState) -> int | None:
        """Time of a trigger that no plan has used yet, and that was given within ten minutes."""
        at_ms = self._unanswered_trigger(state)
        return at_ms if at_ms is not None and self._is_near(at_ms) else None

    def missed_trigger(self, state: GroupState) -> int | None:
        """Time of a trigger that no plan has used, and none may use any more."""
        at_ms = self._unanswered_trigger(state)
        return None if at_ms is None or self._is_near(at_ms) else at_ms

    def _unanswered_trigger(self, state: GroupState) -> int | None:
        orders = self.facts.orders
        at_ms = orders.triggered_at_ms if orders is not None else None
        # An earlier one that is read again is as near as the newest.
        return at_ms if at_ms != state.triggered_at_ms else None

    def _is_near(self, at_ms: int) -> bool:
        return abs(self.now_ms - at_ms) < _TRIGGER_LIVES_MS
