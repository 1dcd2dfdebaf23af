"""One member of a group under an assignor of this package: what it remembers, sends, and decides as leader.

It is independent of client libraries; an adapter passes bytes and generations in and out::

    user_data ─► JoinGroup ─► lead (the leader only) ─► SyncGroup ─► assigned ─► wants_rejoin ─► rejoin, or not
                                                                         └────► what to acknowledge, if anything
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from assignor.clients.control import ControlState, Newest
from assignor.clients.plugin.dialect import Joined, dialect
from assignor.clients.plugin.lags import Lags
from assignor.clients.plugin.leading import Led, lead
from assignor.clients.plugin.user_data import (
    NO_EPOCH,
    AssignmentData,
    Outcome,
    SubscriptionData,
    assignment_data_of,
    encode_assignment_data,
)
from assignor.errors import AssignorError, UnknownStrategyError
from assignor.protocol.acks import AnyAck, Applied, Refused, Void
from assignor.protocol.control import ControlRecord
from assignor.protocol.instants import format_instant
from assignor.protocol.kafka.consumer import NO_GENERATION, TopicPartitions
from assignor.protocol.kafka.sticky import Claims
from assignor.strategies.catalogue import CATALOGUE, StrategyFacts, facts_of
from assignor.strategies.names import LAG_AWARE, STICKY

log = logging.getLogger(__name__)

PLAN_ASSIGNOR = "lagwise"
"""Name of the assignor that applies plans."""

GREATEST_EPOCH = 2**31 - 1
_MOST_REJOINS = 3
_LONGEST_WHY = 400

Answer: TypeAlias = tuple[TopicPartitions, bytes | None]
"""Partitions of a member, and the user data of its assignment; None for none."""


class NotAttachedError(AssignorError):
    """An assignor needs its consumer and has none; call `attach` before the consumer joins its group."""


@dataclass(slots=True)
class Past:
    """Partitions of a member in its last generation; the entries of one consumer's list share it."""

    owned: TopicPartitions = field(default_factory=dict)
    generation: int = NO_GENERATION
    """Generation of the group."""
    epoch: int = NO_GENERATION
    """Epoch of KIP-315, sent instead of the generation if topics are joined."""


class Membership:
    """The state of one group member from rebalance to rebalance.

    A client calls it from one thread at a time; only `wants_rejoin` may be called from another.

    Args:
        strategy: Assigns when no plan fits.
        control: State of the control topic; None if the member follows no plans.
        name: Name on the wire.
        past: Shared with the other entries of the consumer's list; by default a new one.
    """

    __slots__ = (
        "_applied",
        "_asked",
        "_awaited",
        "_considered",
        "_control",
        "_dialect",
        "_generation",
        "_leads",
        "_led",
        "_strategy",
        "name",
        "past",
    )

    def __init__(
        self,
        strategy: StrategyFacts,
        control: ControlState | None = None,
        *,
        name: str,
        past: Past | None = None,
    ) -> None:
        self.name = name
        self.past = past or Past()
        self._dialect = dialect(name)
        self._strategy = strategy
        self._control = control
        self._generation = NO_GENERATION
        self._considered = NO_EPOCH
        self._applied = NO_EPOCH
        self._awaited = NO_EPOCH
        self._led: frozenset[str] = frozenset()
        self._leads: frozenset[str] = frozenset()
        self._asked: tuple[int, list[int]] = (NO_EPOCH, [])

    @property
    def generation(self) -> int:
        """Generation in which this assignor last received an assignment."""
        return self._generation

    def user_data(self, held: TopicPartitions) -> bytes | None:
        """User data to join with, None for none.

        Args:
            held: Partitions that the member keeps reading while it joins, none under the eager protocol. A cooperative
                member that lost its partitions holds nothing, and claims them only as its history.
        """
        generation = self.past.epoch if self._strategy.joins else self.past.generation
        claims = Claims(owned=held or self.past.owned, generation=generation)
        epoch = self._control.epoch if self._control is not None else NO_EPOCH
        return self._dialect.say(SubscriptionData(claims=claims, plan_epoch=epoch, held=bool(held)))

    def awaits(self, members: Sequence[Joined]) -> int | None:
        """Return the epoch of a plan that a member has read and the leader has not; None if there is none.

        The leader's client calls this before `lead` and waits a little for the plan. Each epoch is returned only once,
        so that a plan that does not arrive in time does not delay the next rebalance, too.
        """
        control = self._control
        if control is None:
            return None
        claimed = self._newest_epoch(members)
        if claimed <= control.epoch or claimed == self._awaited:
            return None
        self._awaited = claimed
        return claimed

    def _newest_epoch(self, members: Sequence[Joined]) -> int:
        """Newest epoch of a plan that any member has read."""
        return max((self._dialect.hear(member).plan_epoch for member in members), default=NO_EPOCH)

    def lead(
        self,
        *,
        counts: Mapping[str, int],
        members: Sequence[Joined],
        now_ms: int,
        lags: Lags | None = None,
    ) -> dict[str, Answer]:
        """Assign every member its partitions; only the leader is asked to.

        Args:
            counts: Partitions of every subscribed topic that has metadata.
            members: All members, this one among them.
            now_ms: Time in ms since 1970, for plans that expire.
            lags: Known lags, for a strategy that reads them; None if none are known.

        Raises:
            CannotLeadError: numpy cannot be imported.
        """
        control = self._control
        considered, plan, over = Newest(NO_EPOCH, None, None) if control is None else control.newest(now_ms)
        led = lead(
            counts=counts,
            members=members,
            strategy=self._strategy,
            plan=plan,
            dialect=self._dialect,
            lags=lags,
        )
        self._led = frozenset(member.member_id for member in members)
        late = None if over is None else self._why_late(over, led, members, now_ms)
        why = late or led.why
        log.info(
            "assigned a group by %s: %s",
            "its strategy" if led.plan_epoch is None else f"the plan of epoch {led.plan_epoch}",
            why,
            extra={"why": why, "plan_epoch": led.plan_epoch},
        )
        # KIP-315: one above all epochs received.
        joined = max(led.generation, NO_EPOCH) + 1
        epoch = joined if self._strategy.joins else considered
        if not self._dialect.answers:
            return {member_id: (partitions, None) for member_id, partitions in led.placed.items()}
        is_refused = late is not None or (plan is not None and led.plan_epoch is None)
        user_data = _user_data(led, epoch, refusal=why if is_refused else None)
        return {member_id: (partitions, user_data[member_id]) for member_id, partitions in led.placed.items()}

    def _why_late(self, over: ControlRecord, led: Led, members: Sequence[Joined], now_ms: int) -> str | None:
        """Why the leader refuses a plan that is over by its clock; None if this rebalance is not the plan's.

        It is the first one after the generation that the plan was made for, of the plan's members: they may have
        rejoined for it. Without an answer, each plan would cost the group a rebalance, and the job would not learn why.
        """
        if led.generation != over.base_generation or self._led != over.members.keys():
            return None
        if self._newest_epoch(members) != over.epoch:
            return None
        now, end = format_instant(now_ms), format_instant(over.valid_until_ms)
        return f"plan {over.epoch} is over by the leader's clock ({now}, valid until {end})"

    def assigned(
        self,
        partitions: TopicPartitions,
        user_data: bytes | None,
        generation: int,
        *,
        member: str,
        now_ms: int,
    ) -> AnyAck | None:
        """Accept the leader's answer, and return the acknowledgement to send, at most one in a generation.

        Args:
            partitions: Partitions of this member.
            user_data: User data of its assignment.
            generation: Generation of the group.
            member: Its member id.
            now_ms: Time in ms since 1970, for people who read the acknowledgement.
        """
        answer = assignment_data_of(user_data)
        self._considered = answer.epoch
        self._generation = generation
        self.past.owned, self.past.generation = partitions, generation
        if self._strategy.joins:
            # A leader may send an epoch that leaves no room for the next one in the field.
            self.past.epoch = min(answer.epoch, GREATEST_EPOCH)
        self._leads, self._led = self._led, frozenset()
        return self._ack(answer, generation=generation, member=member, at_ms=now_ms)

    def _ack(self, answer: AssignmentData, *, generation: int, member: str, at_ms: int) -> AnyAck | None:
        control = self._control
        if control is None or answer.epoch == NO_EPOCH or answer.outcome is Outcome.SILENT:
            return None
        head: dict[str, Any] = {
            "cluster": control.cluster,
            "group": control.group,
            "generation": generation,
            "epoch": answer.epoch,
            "member": member,
            "at_ms": at_ms,
        }
        if answer.outcome is Outcome.APPLIED:
            self._applied = answer.epoch
            return Applied(**head)
        if answer.epoch == self._applied:
            return Void(**head, why=answer.why)
        return Refused(**head, why=answer.why)

    def wants_rejoin(self, now_ms: int) -> bool:
        """Return whether the member should make the group rejoin now, once for each reason.

        Every member rejoins for a plan made for its own generation, so that all join at once and none waits for a
        heartbeat. The leader also rejoins later, a few times, for a plan for its members that no leader has taken into
        account: it may have read the plan after the others, or have requested the first rejoin during a join, where
        clients forget it. No member rejoins for a plan that moves nothing.
        """
        plan = self._control.plan(now_ms) if self._control is not None else None
        if plan is None or plan.epoch <= self._considered or not self._may_ask(plan):
            return False
        self._asked[1].append(self.generation)
        # Older drivers publish plans that move nothing, and a rebalance would only interrupt the group. Clients look
        # often, so a plan is walked only now, once in a generation.
        return any(member.base != member.target for member in plan.members.values())

    def _may_ask(self, plan: ControlRecord) -> bool:
        if self._asked[0] != plan.epoch:
            self._asked = (plan.epoch, [])
        asked = self._asked[1]
        if self.generation in (NO_GENERATION, *asked) or len(asked) >= _MOST_REJOINS:
            return False
        is_for_members = self.generation > plan.base_generation and self._leads == plan.members.keys()
        return is_for_members or self.generation == plan.base_generation


def _user_data(led: Led, epoch: int, *, refusal: str | None) -> dict[str, bytes]:
    """User data of every member's assignment."""
    if refusal is not None:
        answer = AssignmentData(epoch=epoch, outcome=Outcome.REFUSED, why=refusal[:_LONGEST_WHY])
        return dict.fromkeys(led.placed, encode_assignment_data(answer))
    silent = encode_assignment_data(AssignmentData(epoch=epoch))
    applied = encode_assignment_data(AssignmentData(epoch=epoch, outcome=Outcome.APPLIED))
    return {member_id: applied if member_id in led.arrived else silent for member_id in led.placed}


def following(control: ControlState) -> Membership:
    """A member that follows the control topic; `sticky` assigns if no plan fits."""
    return Membership(facts_of(STICKY), control, name=PLAN_ASSIGNOR)


def under_strategy(
    name: str, *, past: Past | None = None, has_old_name: bool = False, knows_lag: bool = False
) -> Membership:
    """Create a member of a group under one strategy, without a control topic.

    Args:
        name: Name of the strategy, and on the wire.
        past: See `Membership`.
        has_old_name: Whether to use the wire name of earlier releases, for a rolling bounce.
        knows_lag: Whether `lead` will get lags. No leader knows the rates that `lag-sticky` also needs.

    Raises:
        UnknownStrategyError: There is no such strategy, or it needs data that its leader lacks.
    """
    lagless = {known for known in CATALOGUE if not CATALOGUE[known].reads_lag}
    available = lagless | {LAG_AWARE} if knows_lag else lagless
    if name not in available:
        raise UnknownStrategyError(name, tuple(sorted(available)))
    on_the_wire = f"{PLAN_ASSIGNOR}-{name}" if has_old_name else name
    return Membership(facts_of(name), name=on_the_wire, past=past)
