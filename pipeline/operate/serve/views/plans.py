"""The newest decision about each group, the outcome of its newest plan, and what the target means for each member."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import clock
from pipeline.operate.output import Row
from pipeline.operate.serve.views.facts import Facts
from pipeline.planning.rows.causes import guard_of
from pipeline.planning.state import PlanState, from_json

OUTCOMES = ("open", "applied", "partly", "refused", "superseded", "expired")
DECIDED = ("none", "held_back", "dry_run", "advice", "awaiting_approval", "abstain", "paused")
EFFECTS = ("helped", "hurt", "cannot tell")
KINDS = ("accepted", "applied", "refused", "void")

Key = tuple[str, int]
"""Topic and partition number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome so far of the newest published plan. JSON has these fields, except `needed`, under `published`."""

    epoch: int
    status: str
    moves: int
    moves_made: int
    published_at: datetime
    valid_until: datetime | None = None
    """None unless it is open."""
    predicted_drain_s: float | None
    realised_drain_s: float | None
    effect: str | None = None
    """One of `EFFECTS`; None until it is judged."""
    effect_why: str | None = None
    needed: frozenset[str] | None = None
    """Members that it takes from or gives to; None unless it is open."""


_RECORDED = (
    *("epoch", "status", "moves", "moves_made", "published_at"),
    *("predicted_drain_s", "realised_drain_s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A group's row of `plan_state`, with the outcome of its plan and its members' answers."""

    row: Mapping[str, Any]
    n_moves: int | None
    """Moves of the target; None if there is none."""
    outcome: Outcome | None
    """None if no plan was ever published."""
    is_paused: bool
    acks: Mapping[str, frozenset[str]]
    """Members by their answer to the newest plan."""
    members: frozenset[str]
    is_kip848: bool = False
    """True if the broker assigns the group; its members then send no acknowledgements."""

    @property
    def guard(self) -> str | None:
        """The guard that holds a plan back, if any."""
        return guard_of(self.row["reason"])

    @property
    def states(self) -> frozenset[str]:
        """Return the entries of `OUTCOMES` and `DECIDED` that apply."""
        decided = self.row["decision"] if self.row["decision"] in DECIDED else None
        found = (
            self.outcome.status if self.outcome else None,
            "held_back" if self.guard else decided,
            "paused" if self.is_paused else None,
        )
        return frozenset(state for state in found if state) or frozenset({"none"})

    @property
    def acks_missing(self) -> int | None:
        """Return the number of members that the open plan needs and that have not answered."""
        needed = self.outcome.needed if self.outcome else None
        if needed is None or self.is_kip848:
            return None
        return len((needed & self.members).difference(*self.acks.values()))


def plans_of(facts: Facts) -> Iterator[Plan]:
    """Plans of all groups that have a decision."""
    rows = facts.plan_state
    # Lists of moves are long, and only their lengths are shown.
    n_moves = pc.if_else(pc.is_valid(rows["assignment"]), pc.list_value_length(rows["moves"]), None)
    # States are long, too: one of a large group takes a millisecond to read. They are read only where the column `plan`
    # is out of date, that is, where the row published a plan or its plan is open.
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
        outcome = _remembered(from_json(state).plan if state else None) or _recorded(row)
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


def plan_row(plan: Plan) -> Row:
    """The decision and the plan in figures. `capacity_known` says whether a drain time of null means never."""
    states, outcome = plan.states, plan.outcome
    return {
        "states": [state for state in (*DECIDED, *OUTCOMES) if state in states],
        **{name: plan.row[name] for name in ("decision", "reason", "probation_until")},
        "guard": plan.guard,
        "moves": plan.n_moves,
        **{
            name: plan.row[name]
            for name in ("drain_s_before", "drain_s_after", "drain_s_bound", "capacity_known")
        },
        "acks": {kind: len(plan.acks[kind]) for kind in KINDS} if outcome and not plan.is_kip848 else None,
        "acks_missing": plan.acks_missing,
        "published": outcome
        and {one.name: getattr(outcome, one.name) for one in fields(outcome) if one.name != "needed"},
    }


def answers(plan: Plan) -> dict[str, list[str]]:
    """Each member's answers to the newest plan, by member id."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for member_id in sorted(plan.acks[kind]):
            found.setdefault(member_id, []).append(kind)
    return found


def _remembered(plan: PlanState | None) -> Outcome | None:
    """Outcome according to the state of the newest decision."""
    if plan is None:
        return None
    is_open = plan.status == "open"
    return Outcome(
        epoch=plan.epoch,
        status=plan.status,
        moves=plan.moves,
        moves_made=plan.done,
        published_at=clock.at(plan.published_at_ms),
        valid_until=clock.at(plan.valid_until_ms) if is_open else None,
        predicted_drain_s=plan.drain_s,
        realised_drain_s=plan.drained_s,
        effect=plan.effect,
        effect_why=plan.effect_why,
        needed=frozenset({*plan.revoked, *plan.receivers}) if is_open else None,
    )


def _recorded(row: Mapping[str, Any]) -> Outcome | None:
    """Outcome according to the columns, which describe the plan before the newest decision."""
    plan = row["plan"]
    if plan is None:
        return None
    return Outcome(
        **{name: plan[name] for name in _RECORDED},
        effect=row["plan_effect"],
        effect_why=row["plan_effect_why"],
    )


def _members(facts: Facts) -> dict[str, frozenset[str]]:
    groups = facts.consumer_groups
    return dict(zip(groups["group_id"].to_pylist(), map(frozenset, _ids(groups)), strict=True))


def _ids(groups: pa.Table) -> Iterator[list[str]]:
    members = groups["members"].combine_chunks()
    ids = pc.struct_field(pc.list_flatten(members), "member_id").to_pylist()
    at = 0
    for length in pc.fill_null(pc.list_value_length(members), 0).to_pylist():
        yield ids[at : at + length]
        at += length


def _acks(facts: Facts) -> Mapping[tuple[str, int | None, str], frozenset[str]]:
    """Members by group, epoch and kind of answer."""
    found = defaultdict[tuple[str, int | None, str], frozenset[str]](frozenset)
    rows = facts.acks.filter(pc.is_in(facts.acks["kind"], value_set=pa.array(KINDS)))
    for row in rows.to_pylist():
        key = row["group_id"], row["epoch"], row["kind"]
        found[key] |= {row["member_id"]}
    return found
