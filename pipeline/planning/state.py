"""The memory of decisions about a group.

The row of each decision holds it as text, so a decision depends only on stored rows.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from assignor.protocol.migration import Migration
from pipeline.planning.readings import Readings, Spell

PlanStatus: TypeAlias = Literal["open", "applied", "partly", "refused", "superseded", "expired"]

Effect: TypeAlias = Literal["helped", "hurt", "cannot tell"]

Ranges: TypeAlias = Mapping[str, Mapping[str, str]]
"""Member id -> topic -> partition ranges."""

UNSEEN_MS = 600_000
"""After a longer pause between two decisions, the state in between is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRate:
    """Observed capacity of one member."""

    rate: float
    """Records/s that it drained at the newest decision."""
    shown: float | None = None
    """Records/s that it drained at its last backlog; None if it never had one."""
    shown_at_ms: int = 0
    """When that was."""
    spells: tuple[Spell, ...] = ()
    """The newest spells in which it showed a speed, the last one last; `shown` is that one's."""
    calm_s: float | None = None
    """Its usual lag at commits when nothing is wrong, in seconds of arrivals; None while unknown."""
    committed_ms: int = 0
    """Its newest commit at the newest decision, by the coordinator's clock; 0 for none."""
    still_since_ms: int = 0
    """Since when it has been seen to stand still; 0 while it reads."""
    readings: Readings | None = None
    """Its reads from each partition while it lagged; None while it keeps up."""
    seen_at_ms: int
    """When it was last a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A member that a plan concerns: how it fared when the plan was published, and how it fares under the plan."""

    member_id: str
    kept_up: bool
    """It had no backlog then."""
    losing: float
    """Records/s by which its backlog grew then; 0 where it fell, and without one."""
    arriving: float
    """Records/s that arrived then in what it held."""
    arriving_then: float
    """Records/s that arrived then in what the plan gives it, or leaves it."""
    lag_then: float = 0.0
    """Lag of that at its commits then, records."""
    commits_ms: tuple[int, ...] = ()
    """Its newest commits since the plan was applied, the last one last."""
    lags: tuple[int, ...] = ()
    """Its lag at each of them, records."""
    grown: float = 0.0
    """Records/s that more arrived at the newest of them than then in what the plan gives it, or leaves it."""
    is_excused: bool = False
    """Arrivals have changed, or it has left: it shows nothing of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker:
    """A member that plans have given partitions, and how slowly it has read since (`price`)."""

    since_ms: int
    """When it was given some last."""
    given: float
    """Records/s that arrived then in what it was given."""
    arriving: float
    """The same in all that it holds with it."""
    lag: float
    """Lag of that at its commits then, records."""
    slow_ms: int = 0
    """Time for which it has been further behind than that."""
    read: float = 0.0
    """Records that it has read in this time."""
    seen_ms: int
    """Newest decision that has seen it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The newest published plan of a group, and what became of it."""

    epoch: int
    """Epoch of its newest publication; a plan in progress is published again."""
    base_generation: int
    target: Ranges
    revoked: Ranges
    """Partitions that the plan revokes from each member; it omits partitions without an owner."""
    receivers: tuple[str, ...] = ()
    """Members that are given something."""
    unassigned: Ranges = field(default_factory=dict)
    """Reason -> topic -> ranges of the partitions that the target leaves without an owner."""
    moves: int
    """Number of partitions that the plan moves, made or open, including those without an owner."""
    published_at_ms: int
    """Time of its first publication; of a plan that had ended and came back, of the one that brought it back."""
    sent_at_ms: int
    """Time of its newest publication."""
    valid_until_ms: int
    """When it expires; put off by each publication after which something has moved."""
    lag: int
    """Records of the whole group when it was first published."""
    drains: Mapping[str, str] | None = None
    """Partitions to drain: topic -> ranges of those that its givers held at its first publication, and of those without
    an owner. None in a plan of an earlier version."""
    drains_lag: int = 0
    """Backlog of these then, records."""
    drain_s: float | None
    """Seconds to drain, as predicted at the first publication; None for never and for unknown."""
    status: PlanStatus = "open"
    why: str | None = None
    """Why it has this status (`reasons`)."""
    status_at_ms: int
    """Since when the status holds, as far as decisions saw it."""
    is_adopted: bool = False
    """A member has accepted it, or a partition has changed hands by it."""
    done: int = 0
    """Largest number of its moves that were seen to be made, since its newest publication."""
    done_then: int = 0
    """Moves that were made at that publication."""
    drained_s: float | None = None
    """Seconds from the first publication until the backlog that it set out to drain was gone; None while it is not."""
    is_unseen: bool = False
    """Decisions paused since its first publication: what it did meanwhile, and whether it helps now, is unknown."""
    migration: Migration = "unknown"
    """As in its newest publication."""
    approved_by: str | None = None
    """Who has approved its target; None for a plan that was published without asking."""
    undo: Ranges = field(default_factory=dict)
    """Partitions that this first publication revoked from each member: their owners before the plan."""
    series: int = 1
    """Plans that are judged together with it, itself included: of none before it could be told what it did."""
    is_needless: bool = False
    """True if no member from which it takes partitions was behind at its commits when it was published."""
    witnesses: tuple[Witness, ...] = ()
    effect: Effect | None = None
    """Its effect, once it is applied and judged (`judge`)."""
    effect_why: str | None = None
    effect_at_ms: int = 0
    takes_back: int | None = None
    """Epoch of the plan whose moves it undoes."""
    is_dropped: bool = False
    """The group is not brought back to the target: it was withdrawn or refused, or nothing moved in its time."""

    @property
    def is_restored(self) -> bool:
        """Return whether the group returns to the target after a rebalance, while the target helps."""
        return self.is_adopted and not self.is_dropped

    @property
    def relieves(self) -> bool:
        """Whether a member from which it takes something was measurably behind before it."""
        behind = {one.member_id for one in self.witnesses if not one.kept_up}
        return not self.is_needless and not behind.isdisjoint(self.undo)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPlan:
    """A plan that is not published before an operator approves it."""

    target: Ranges
    unassigned: Ranges = field(default_factory=dict)
    """As in `PlanState`."""
    remarks: tuple[str, ...] = ()
    """Remarks of strategy and planner on the target."""
    target_hash: str
    base_hash: str
    """Hash of the group that its moves start from."""
    base_generation: int | None
    since_ms: int
    """Start of its wait, which continues if the plan expires and is made again with the same hashes."""
    valid_until_ms: int
    """Until when it may be approved."""
    needs_calm: bool = False
    """It gives partitions back because nothing is behind, and is nothing to approve in the next burst."""

    @property
    def hashes(self) -> tuple[str, str]:
        """Return the hashes that an approval of it names."""
        return self.target_hash, self.base_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """Memory of one group."""

    generation: int | None = None
    since_ms: int = 0
    """When that generation was first seen."""
    rebalanced_at_ms: int = 0
    """When a decision last saw a new generation; 0 if none did. For a KIP-848 group: when it last saw a new target
    assignment other than its plan's (`broker_groups.seen`)."""
    targets_hash: str | None = None
    """Hash of a KIP-848 group's target assignment at the newest decision; None if that was not known."""
    base_hash: str | None = None
    """Hash of the group's state when an evaluation last found that it needs a plan."""
    confirmations: int = 0
    """Evaluations in a row that have found so."""
    cooldown_until_ms: int = 0
    home: Ranges = field(default_factory=dict)
    """Former owners of partitions that plans have moved."""
    calm_since_ms: int = 0
    """Since when nothing curable is behind; 0 while something is."""
    hurts: int = 0
    """Plans that hurt, less those that helped since."""
    unclear: int = 0
    """Plans in a row of which the judge cannot tell whether they helped."""
    rests_until_ms: Mapping[str, int] = field(default_factory=dict)
    """Partitions that a hurtful plan moved, and the time until which they stay where they are."""
    hurt_at_ms: int = 0
    """When a plan was last seen to hurt."""
    probation_until_ms: int = 0
    """No plan before, because one hurt."""
    needless_until_ms: int = 0
    """No plan before that no commit calls for, because one like it hurt."""
    moved_at_ms: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """When plans moved a partition lately: "topic:partition" -> times."""
    rates: Mapping[str, MemberRate] = field(default_factory=dict)
    """Observed capacities of members, by identity (`capacity.identities`)."""
    costs: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """Partitions whose records cost more by what their owners read: how many times, and when that was told last."""
    takers: Mapping[str, Taker] = field(default_factory=dict)
    """Members that have been given partitions lately, by member id."""
    move_price_s: float = 0.0
    """Cost of a move for its taker, in seconds of arrivals in the partition; 0 while unknown."""
    priced_at_ms: int = 0
    """When a taker has shown that last."""
    behind_since_ms: Mapping[str, int] = field(default_factory=dict)
    """Members that are behind at their commits, and since when."""
    behind_seen_ms: int = 0
    """Newest decision that has looked at that."""
    passed_ms: int = 0
    """Longest time for which a member stayed behind before it caught up without a plan, or for which the last plan that
    was taken back had waited (`price.on_way_back`)."""
    passed_at_ms: int = 0
    """When that one had caught up, or the last partitions went back."""
    silent_since_ms: Mapping[str, int] = field(default_factory=dict)
    """Members that did not answer a plan that others accepted, and since when that is known."""
    triggered_at_ms: int = 0
    """Newest trigger that was obeyed, or ignored with the reason."""
    resumed_at_ms: int = 0
    """Newest resume that was obeyed."""
    approval_at_ms: int = 0
    """Newest approval that was answered: by publishing its plan, or with why it is refused."""
    plan: PlanState | None = None
    waiting: WaitingPlan | None = None

    def probation_ends_ms(self, now_ms: int) -> int | None:
        """Return when the group's probation ends; None if it is not on probation."""
        return self.probation_until_ms if self.probation_until_ms > now_ms else None

    @property
    def behind_since(self) -> Mapping[str, int]:
        """Members that are behind, and since when; empty after a rebalance, which has assigned partitions anew."""
        return self.behind_since_ms if self.rebalanced_at_ms <= self.behind_seen_ms else {}

    def seen(self, generation: int | None, now_ms: int) -> "GroupState":
        """The state once this generation has been looked at."""
        if generation == self.generation:
            return self
        rebalanced_at_ms = now_ms if self.since_ms else self.rebalanced_at_ms
        return replace(self, generation=generation, since_ms=now_ms, rebalanced_at_ms=rebalanced_at_ms)


FRESH = GroupState()
"""State of a group without any decision."""


def partition_key(topic: str, partition: int) -> str:
    """Key of a partition in the state; no topic's name has a colon."""
    return f"{topic}:{partition}"


def to_json(state: GroupState) -> str:
    """The state as text; equal states give equal text."""
    return _encoded(state)


def _fields(
    part: GroupState | PlanState | WaitingPlan | MemberRate | Spell | Readings | Taker | Witness,
) -> dict[str, Any]:
    # `dataclasses.asdict` would copy everything below first, which takes longer than writing it.
    return {name: getattr(part, name) for name in part.__slots__}


# `json.dumps` makes an encoder for each call.
_encoded = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=_fields).encode


def from_json(text: str | None) -> GroupState:
    """Parse the state; without a text, or with one of another version, return that of a new group."""
    try:
        values = json.loads(text) if text else {}
        plan, waiting = values.pop("plan", None), values.pop("waiting", None)
        moved = {name: tuple(times) for name, times in values.pop("moved_at_ms", {}).items()}
        rates = {name: _rate(rate) for name, rate in values.pop("rates", {}).items()}
        takers = {name: Taker(**_known(Taker, taker)) for name, taker in values.pop("takers", {}).items()}
        since = {name: int(at_ms) for name, at_ms in values.pop("behind_since_ms", {}).items()}
        costs = _costs(values.pop("costs", {}))
        kept = _known(GroupState, values) | {"costs": costs} | {"takers": takers, "behind_since_ms": since}
        if not math.isfinite(kept.get("move_price_s", 0.0)):
            return FRESH
        return GroupState(**kept, moved_at_ms=moved, rates=rates, plan=_plan(plan), waiting=_waiting(waiting))
    except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError, RecursionError):
        return FRESH


_NAMES = {
    kind: frozenset(kind.__slots__)
    for kind in (GroupState, PlanState, WaitingPlan, MemberRate, Spell, Readings, Taker, Witness)
}


def _rate(values: dict[str, Any]) -> MemberRate:
    spells = tuple(map(_spell, values.get("spells", ())))
    return MemberRate(**_known(MemberRate, values | {"spells": spells, "readings": _readings(values)}))


def _spell(values: dict[str, Any]) -> Spell:
    rows = {name: tuple(values[name]) for name in ("speeds", "held_ms") if name in values}
    return Spell(**_known(Spell, values | rows))


def _readings(values: dict[str, Any]) -> Readings | None:
    if not (readings := values.get("readings")):
        return None
    rows = {name: tuple(tuple(row) for row in readings[name]) for name in ("rates", "behind", "marks")}
    found = Readings(
        member_id=readings["member_id"],
        of=tuple(readings["of"]),
        marks_of=tuple(readings["marks_of"]),
        **rows,
    )
    return found if found.is_sound else None


def _costs(values: dict[str, tuple[float, int]]) -> dict[str, tuple[float, int]]:
    """Those that can be true."""
    return {
        key: (cost, int(at_ms))
        for key, (cost, at_ms) in values.items()
        if key.rpartition(":")[2].isdecimal() and 1 <= cost < math.inf
    }


def _plan(values: dict[str, Any] | None) -> PlanState | None:
    if not values:
        return None
    known = _known(PlanState, values)
    seen = tuple(_witness(one) for one in values.get("witnesses", ()))
    return PlanState(**{**known, "receivers": tuple(values["receivers"]), "witnesses": seen})


def _witness(values: dict[str, Any]) -> Witness:
    lists = {name: tuple(values[name]) for name in ("commits_ms", "lags")}
    return Witness(**_known(Witness, {**values, **lists}))


def _waiting(values: dict[str, Any] | None) -> WaitingPlan | None:
    if not values:
        return None
    return WaitingPlan(**_known(WaitingPlan, {**values, "remarks": tuple(values["remarks"])}))


def _known(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values without those of another version, which remembered more."""
    # Nearly all states are of this version, and there are thousands of groups with several members each.
    names = _NAMES[kind]
    return values if values.keys() <= names else {name: values[name] for name in values.keys() & names}
