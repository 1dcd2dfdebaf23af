"""Samples of plans: what was decided about each group last, and what became of the newest plan that was published."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.exposition import Family
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.facts import Facts
from pipeline.operate.serve.metrics.groups import group_labels
from pipeline.operate.serve.metrics.text import Samples, samples
from pipeline.planning.rows.causes import guard_of
from pipeline.planning.state import PlanState, from_json

OUTCOMES = ("open", "applied", "partly", "refused", "superseded", "expired")
DECIDED = ("none", "held_back", "dry_run", "advice", "awaiting_approval", "abstain", "paused")
EFFECTS = ("helped", "hurt", "cannot tell")
KINDS = ("accepted", "applied", "refused", "void")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became so far of the newest plan that was published."""

    epoch: int
    status: str
    moves: int
    made: int
    published_at_s: float
    predicted_drain_s: float | None
    realised_drain_s: float | None
    valid_until_s: float | None = None
    """None unless it is open."""
    needed: frozenset[str] | None = None
    """Members that it takes from or gives to; None unless it is open."""
    effect: str | None = None
    """One of `EFFECTS`; None until it is judged."""
    effect_why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One group's row of `plan_state`, and what else is known of its plan."""

    row: Mapping[str, Any]
    n_moves: int | None
    """Of the target; None when there is none."""
    outcome: Outcome | None
    """None when no plan was ever published."""
    is_paused: bool
    acks: Mapping[str, frozenset[str]]
    """Members by what they said about the newest plan."""
    members: frozenset[str]
    is_kip848: bool = False
    """The broker assigns the group, and its members answer nothing."""

    @property
    def guard(self) -> str | None:
        """The one that holds a plan back."""
        return guard_of(self.row["reason"])

    @property
    def probation_until(self) -> datetime | None:
        """End of the probation that the group was on at its newest decision."""
        until: datetime | None = self.row["probation_until"]
        return until

    @property
    def states(self) -> frozenset[str]:
        """Those of `OUTCOMES` and `DECIDED` that apply."""
        decided = self.row["decision"] if self.row["decision"] in DECIDED else None
        found = (
            self.outcome.status if self.outcome else None,
            "held_back" if self.guard else decided,
            "paused" if self.is_paused else None,
        )
        return frozenset(state for state in found if state) or frozenset({"none"})

    @property
    def acks_missing(self) -> int | None:
        """Members of the group that the open plan needs, and that have said nothing."""
        needed = self.outcome.needed if self.outcome else None
        if needed is None or self.is_kip848:
            return None
        return len((needed & self.members).difference(*self.acks.values()))


def plan_samples(facts: Facts) -> Iterator[Samples]:
    """Samples of every group about which something was decided."""
    plans = list(plans_of(facts))
    yield _by(families.PLAN_STATE, "state", _states(plans))
    yield _by(families.PLAN_HELD_BACK, "guard", ((one, one.guard, 1) for one in plans if one.guard))
    yield _by(families.PLAN_DRAIN_SECONDS, "when", _drain_seconds(plans))
    yield _by(families.PLAN_MOVES, "state", _moves(plans))
    on_probation = ((one, one.probation_until) for one in plans)
    ends = ((one, until.timestamp() if until else None) for one, until in on_probation)
    yield _each(families.PLAN_PROBATION, ends)
    yield from _outcomes([(one, one.outcome) for one in plans if one.outcome])


def _outcomes(published: list[tuple[Plan, Outcome]]) -> Iterator[Samples]:
    """Of groups that were ever given a plan."""
    judged = [(one, plan.effect) for one, plan in published if plan.effect]
    effects = ((one, name.replace(" ", "_"), int(name == found)) for one, found in judged for name in EFFECTS)
    yield _by(families.PLAN_EFFECT, "effect", effects)
    acks = ((one, kind, len(one.acks[kind])) for one, _ in published if not one.is_kip848 for kind in KINDS)
    yield _by(families.PLAN_ACKS, "kind", acks)
    yield _each(families.PLAN_ACKS_MISSING, ((one, one.acks_missing) for one, _ in published))
    yield _each(families.PLAN_EPOCH, ((one, plan.epoch) for one, plan in published))
    yield _each(families.PLAN_PUBLISHED, ((one, plan.published_at_s) for one, plan in published))
    yield _each(families.PLAN_VALID_UNTIL, ((one, plan.valid_until_s) for one, plan in published))


def _states(plans: Iterable[Plan]) -> Iterator[tuple[Plan, str, int]]:
    for one in plans:
        states = one.states
        for state in (*DECIDED, *OUTCOMES):
            yield one, state, int(state in states)


def _drain_seconds(plans: Iterable[Plan]) -> Iterator[tuple[Plan, str, float | None]]:
    for one in plans:
        for when in ("before", "after", "bound"):
            yield one, when, one.row[f"drain_s_{when}"]
        if one.outcome:
            yield one, "predicted", one.outcome.predicted_drain_s
            yield one, "realised", one.outcome.realised_drain_s


def _moves(plans: Iterable[Plan]) -> Iterator[tuple[Plan, str, int | None]]:
    for one in plans:
        yield one, "proposed", one.n_moves
        if one.outcome:
            yield one, "planned", one.outcome.moves
            yield one, "made", one.outcome.made


def plans_of(facts: Facts) -> Iterator[Plan]:
    """Of every group about which something was decided."""
    rows = facts.plan_state
    # The lists of moves are long, and only their lengths are shown.
    n_moves = pc.if_else(pc.is_valid(rows["assignment"]), pc.list_value_length(rows["moves"]), None)
    # So is what decisions remember. It is read where the row's own plan is newer than what its column `plan` tells, or
    # is open: that takes a millisecond for a large group.
    is_open = pc.equal(pc.struct_field(rows["plan"].combine_chunks(), "status"), "open")
    is_read = pc.or_kleene(is_open, pc.equal(rows["decision"].combine_chunks(), "publish"))
    states = pc.if_else(is_read, rows["state"].combine_chunks(), None)
    paused = set(facts.orders.filter(facts.orders["paused"])["group_id"].to_pylist())
    members, acks = _members(facts), _acks(facts)
    types = dict(
        zip(*(facts.consumer_groups[name].to_pylist() for name in ("group_id", "group_type")), strict=True)
    )
    small = rows.drop_columns(["assignment", "moves", "state"]).to_pylist()
    for row, moves, state in zip(small, n_moves.to_pylist(), states.to_pylist(), strict=True):
        group_id = row["group_id"]
        outcome = _remembered(from_json(state).plan if state else None) or _told(row)
        present = members.get(group_id, frozenset())
        yield Plan(
            row=row,
            n_moves=moves,
            outcome=outcome,
            is_paused=group_id in paused,
            acks={kind: acks[group_id, outcome.epoch if outcome else None, kind] & present for kind in KINDS},
            members=present,
            is_kip848=types.get(group_id) == "consumer",
        )


def _remembered(plan: PlanState | None) -> Outcome | None:
    """As the newest decision remembers it."""
    if plan is None:
        return None
    is_open = plan.status == "open"
    return Outcome(
        epoch=plan.epoch,
        status=plan.status,
        moves=plan.moves,
        made=plan.done,
        published_at_s=plan.published_at_ms / 1000,
        predicted_drain_s=plan.drain_s,
        realised_drain_s=plan.drained_s,
        valid_until_s=plan.valid_until_ms / 1000 if is_open else None,
        needed=frozenset({*plan.revoked, *plan.receivers}) if is_open else None,
        effect=plan.effect,
        effect_why=plan.effect_why,
    )


def _told(row: Mapping[str, Any]) -> Outcome | None:
    """As the columns of plans before the newest decision have it."""
    plan = row["plan"]
    if plan is None:
        return None
    return Outcome(
        epoch=plan["epoch"],
        status=plan["status"],
        moves=plan["moves"],
        made=plan["moves_made"],
        published_at_s=plan["published_at"].timestamp(),
        predicted_drain_s=plan["predicted_drain_s"],
        realised_drain_s=plan["realised_drain_s"],
        effect=row["plan_effect"],
        effect_why=row["plan_effect_why"],
    )


def _members(facts: Facts) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    groups = facts.consumer_groups
    for group_id, members in zip(groups["group_id"].to_pylist(), _ids(groups), strict=True):
        found[group_id] = frozenset(members)
    return found


def _ids(groups: pa.Table) -> Iterator[list[str]]:
    members = groups["members"].combine_chunks()
    ids = pc.struct_field(pc.list_flatten(members), "member_id").to_pylist()
    at = 0
    for length in pc.fill_null(pc.list_value_length(members), 0).to_pylist():
        yield ids[at : at + length]
        at += length


def _acks(facts: Facts) -> Mapping[tuple[str, int | None, str], frozenset[str]]:
    """Members by group, epoch and what they said."""
    found = defaultdict[tuple[str, int | None, str], frozenset[str]](frozenset)
    rows = facts.acks.filter(pc.is_in(facts.acks["kind"], value_set=pa.array(KINDS)))
    for row in rows.to_pylist():
        key = row["group_id"], row["epoch"], row["kind"]
        found[key] |= {row["member_id"]}
    return found


def _by(family: Family, label: str, found: Iterable[tuple[Plan, str | None, float | None]]) -> Samples:
    """A family with one more label than the group's."""
    rows = list(found)
    table = _table(plan for plan, _, _ in rows)
    table = table.append_column(label, pa.array([value for _, value, _ in rows], pa.string()))
    return samples(family, group_labels(table, **{label: label}), _numbers(value for *_, value in rows))


def _each(family: Family, found: Iterable[tuple[Plan, float | None]]) -> Samples:
    """A family with one sample for each group."""
    rows = list(found)
    return samples(
        family, group_labels(_table(plan for plan, _ in rows)), _numbers(value for _, value in rows)
    )


def _table(plans: Iterable[Plan]) -> pa.Table:
    keys = [(plan.row["cluster"], plan.row["group_id"]) for plan in plans]
    return pa.table(
        {
            "cluster": pa.array([cluster for cluster, _ in keys], pa.string()),
            "group_id": pa.array([group_id for _, group_id in keys], pa.string()),
        }
    )


def _numbers(values: Iterable[float | None]) -> pa.Array:
    """Whole numbers are written as such."""
    return pa.array(values, pa.float64())
