"""Samples of plans: what was decided about each group last, and what became of the newest plan that was published."""

import re
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
from pipeline.planning.state import PlanState, from_json

OUTCOMES = ("open", "applied", "partly", "refused", "superseded", "expired")
DECIDED = ("none", "held_back", "dry_run", "abstain", "paused")
KINDS = ("accepted", "applied", "refused", "void")

_HELD_BACK = re.compile(r"held back by (\w+): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One group's row of `plan_state`, and what else is known of its plan."""

    row: Mapping[str, Any]
    n_moves: int | None
    """Of the target; None when there is none."""
    open: PlanState | None
    is_paused: bool
    acks: Mapping[str, frozenset[str]]
    """Members by what they said about the newest plan."""
    members: frozenset[str]

    @property
    def outcome(self) -> Mapping[str, Any]:
        """Of the newest published plan; nothing when there was none."""
        found: Mapping[str, Any] = self.row["plan"] or {}
        return found

    @property
    def guard(self) -> str | None:
        """The one that holds a plan back."""
        held = _HELD_BACK.match(self.row["reason"] or "")
        return held[1] if held else None

    @property
    def states(self) -> frozenset[str]:
        """Those of `OUTCOMES` and `DECIDED` that apply."""
        decided = self.row["decision"] if self.row["decision"] in DECIDED else None
        found = (
            self.outcome.get("status"),
            "held_back" if self.guard else decided,
            "paused" if self.is_paused else None,
        )
        return frozenset(state for state in found if state) or frozenset({"none"})

    @property
    def acks_missing(self) -> int | None:
        """Members of the group that the open plan needs, and that have said nothing."""
        if self.open is None:
            return None
        answered = frozenset[str]().union(*self.acks.values())
        return len((frozenset(self.open.revoked) | {*self.open.receivers}) & (self.members - answered))


def plan_samples(facts: Facts) -> Iterator[Samples]:
    """Samples of every group about which something was decided."""
    plans = list(_plans(facts))
    yield _by(families.PLAN_STATE, "state", _states(plans))
    yield _by(families.PLAN_HELD_BACK, "guard", ((one, one.guard, 1) for one in plans if one.guard))
    yield _by(families.PLAN_DRAIN_SECONDS, "when", _drain_seconds(plans))
    yield _by(families.PLAN_MOVES, "state", _moves(plans))
    yield from _outcomes([one for one in plans if one.outcome])


def _outcomes(published: list[_Plan]) -> Iterator[Samples]:
    """Of groups that were ever given a plan."""
    acks = ((one, kind, len(one.acks.get(kind, ()))) for one in published for kind in KINDS)
    yield _by(families.PLAN_ACKS, "kind", acks)
    yield _each(families.PLAN_ACKS_MISSING, ((one, one.acks_missing) for one in published))
    yield _each(families.PLAN_EPOCH, ((one, one.outcome["epoch"]) for one in published))
    times = ((one, _seconds(one.outcome["published_at"])) for one in published)
    yield _each(families.PLAN_PUBLISHED, times)
    valid = ((one, one.open.valid_until_ms / 1000) for one in published if one.open)
    yield _each(families.PLAN_VALID_UNTIL, valid)


def _states(plans: Iterable[_Plan]) -> Iterator[tuple[_Plan, str, int]]:
    for one in plans:
        states = one.states
        for state in (*DECIDED, *OUTCOMES):
            yield one, state, int(state in states)


def _drain_seconds(plans: Iterable[_Plan]) -> Iterator[tuple[_Plan, str, float | None]]:
    for one in plans:
        for when in ("before", "after", "bound"):
            yield one, when, one.row[f"drain_s_{when}"]
        for when in ("predicted", "realised"):
            yield one, when, one.outcome.get(f"{when}_drain_s")


def _moves(plans: Iterable[_Plan]) -> Iterator[tuple[_Plan, str, int | None]]:
    for one in plans:
        yield one, "proposed", one.n_moves
        yield one, "planned", one.outcome.get("moves")
        yield one, "made", one.outcome.get("moves_made")


def _plans(facts: Facts) -> Iterator[_Plan]:
    rows = facts.plan_state
    # The lists of moves are long, and only their lengths are shown.
    n_moves = pc.if_else(pc.is_valid(rows["assignment"]), pc.list_value_length(rows["moves"]), None)
    is_open = pc.equal(pc.struct_field(rows["plan"].combine_chunks(), "status"), "open")
    # So is what decisions remember, which takes a millisecond to read for a large group.
    states = pc.if_else(is_open, rows["state"].combine_chunks(), None)
    paused = set(facts.orders.filter(facts.orders["paused"])["group_id"].to_pylist())
    members, acks = _members(facts), _acks(facts)
    small = rows.drop_columns(["assignment", "moves", "state"]).to_pylist()
    for row, moves, state in zip(small, n_moves.to_pylist(), states.to_pylist(), strict=True):
        group_id, epoch = row["group_id"], (row["plan"] or {}).get("epoch")
        present = members.get(group_id, frozenset())
        yield _Plan(
            row=row,
            n_moves=moves,
            open=from_json(state).plan if state else None,
            is_paused=group_id in paused,
            acks={kind: acks[group_id, epoch, kind] & present for kind in KINDS},
            members=present,
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


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def _by(family: Family, label: str, found: Iterable[tuple[_Plan, str | None, float | None]]) -> Samples:
    """A family with one more label than the group's."""
    rows = list(found)
    table = _table(plan for plan, _, _ in rows)
    table = table.append_column(label, pa.array([value for _, value, _ in rows], pa.string()))
    return samples(family, group_labels(table, **{label: label}), _numbers(value for *_, value in rows))


def _each(family: Family, found: Iterable[tuple[_Plan, float | None]]) -> Samples:
    """A family with one sample for each group."""
    rows = list(found)
    return samples(
        family, group_labels(_table(plan for plan, _ in rows)), _numbers(value for _, value in rows)
    )


def _table(plans: Iterable[_Plan]) -> pa.Table:
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
