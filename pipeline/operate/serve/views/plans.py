"""The newest decision about a group and what became of its newest plan; and what the target means for each member."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from assignor.protocol.ranges import parse_ranges
from pipeline.operate.output import Row
from pipeline.operate.serve.metrics.plans import DECIDED, KINDS, OUTCOMES, Outcome, Plan

_MOST_PARTITIONS = 1_000_000

Key = tuple[str, int]
"""Topic and partition number."""


def plan_row(plan: Plan) -> Row:
    """The decision and the plan in figures; a time to drain of null means never, or unknown."""
    states = plan.states
    return {
        "states": [state for state in (*DECIDED, *OUTCOMES) if state in states],
        "decision": plan.row["decision"],
        "reason": plan.row["reason"],
        "guard": plan.guard,
        "probation_until": plan.probation_until,
        "moves": plan.n_moves,
        "drain_s_before": plan.row["drain_s_before"],
        "drain_s_after": plan.row["drain_s_after"],
        "drain_s_bound": plan.row["drain_s_bound"],
        "acks": {kind: len(plan.acks[kind]) for kind in KINDS}
        if plan.outcome and not plan.is_kip848
        else None,
        "acks_missing": plan.acks_missing,
        "published": None if plan.outcome is None else _published(plan.outcome),
    }


def _published(outcome: Outcome) -> Row:
    return {
        "epoch": outcome.epoch,
        "status": outcome.status,
        "moves": outcome.moves,
        "moves_made": outcome.made,
        "published_at": _time(outcome.published_at_s),
        "valid_until": _time(outcome.valid_until_s),
        "predicted_drain_s": outcome.predicted_drain_s,
        "realised_drain_s": outcome.realised_drain_s,
        "effect": outcome.effect,
        "effect_why": outcome.effect_why,
    }


def answers(plan: Plan) -> dict[str, list[str]]:
    """What each member said about the newest plan, by member id."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for member_id in sorted(plan.acks[kind]):
            found.setdefault(member_id, []).append(kind)
    return found


def target_of(assignment: Mapping[str, Mapping[str, str]] | None) -> dict[str, list[Key]] | None:
    """What each member is to have, by member id; None when there is no target.

    Raises:
        DecodeError: The text is none that lagwise writes.
    """
    if assignment is None:
        return None
    return {
        member_id: [
            (topic, number)
            for topic, ranges in topics.items()
            for number in parse_ranges(ranges, at_most=_MOST_PARTITIONS)
        ]
        for member_id, topics in assignment.items()
    }


def of_target(keys: Iterable[Key], rows: Mapping[Key, Row]) -> Row:
    """How many partitions these are and their lag, in records; None where a part of it is unknown."""
    found = list(keys)
    lags = [rows[key]["lag"] if key in rows else None for key in found]
    known = [lag for lag in lags if lag is not None]
    return {"partitions": len(found), "lag": sum(known) if len(known) == len(lags) else None}


def moved(moves: Iterable[Mapping[str, Any]], side: str) -> Counter[str | None]:
    """Moves by the member that they take a partition from (`from`) or give it to (`to`)."""
    return Counter(move[side] for move in moves)


def _time(at_s: float | None) -> datetime | None:
    return None if at_s is None else datetime.fromtimestamp(at_s, tz=timezone.utc)
