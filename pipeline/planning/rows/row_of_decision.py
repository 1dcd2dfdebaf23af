"""Plan: a decision to a row of `plan_state`."""

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from pipeline.planning.state import MemberRate, PlanState, to_json
from pipeline.planning.values import Decision


def to_row(group_id: str, decision: Decision, *, at_ms: int, batch_id: int) -> dict[str, Any]:
    """The row, without the cluster and without `recorded_at`, and the rates of members."""
    return {
        "group_id": group_id,
        "epoch": decision.epoch,
        "decision": decision.decided,
        "reason": decision.reason,
        "strategy": decision.strategy,
        "base_generation": decision.base_generation,
        "base_hash": decision.base_hash,
        "target_hash": decision.target_hash,
        "assignment": _pairs(decision.assignment),
        "moves": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "from": move.from_member,
                "to": move.to_member,
                "lag": move.lag,
            }
            for move in decision.moves
        ],
        "drain_s_before": decision.figures.drain_s_before,
        "drain_s_after": decision.figures.drain_s_after,
        "drain_s_bound": decision.figures.drain_s_bound,
        "capacity_known": decision.figures.capacity_known,
        "imbalance_before": decision.figures.imbalance_before,
        "imbalance_after": decision.figures.imbalance_after,
        "record": decision.record,
        "valid_until": _time(decision.valid_until_ms),
        "awaiting_since": _time(decision.awaiting_since_ms),
        "plan": _plan(decision.plan),
        "plan_effect": decision.plan.effect if decision.plan is not None else None,
        "plan_effect_why": decision.plan.effect_why if decision.plan is not None else None,
        "probation_until": _time(decision.state.probation_ends_ms(at_ms)),
        "state": to_json(decision.state),
        "updated_at": _time(at_ms),
        "batch_id": batch_id,
        "rates": [_rate(identity, rate) for identity, rate in sorted(decision.state.rates.items())],
    }


def _rate(identity: str, rate: MemberRate) -> dict[str, Any]:
    return {
        "identity": identity,
        "rate": rate.rate,
        "shown_rate": rate.shown,
        "shown_at": None if rate.shown is None else _time(rate.shown_at_ms),
        "seen_at": _time(rate.seen_at_ms),
    }


def _plan(plan: PlanState | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {
        "epoch": plan.epoch,
        "status": plan.status,
        "why": plan.why,
        "status_at": _time(plan.status_at_ms),
        "moves": plan.moves,
        "moves_made": plan.done,
        "published_at": _time(plan.published_at_ms),
        "predicted_drain_s": plan.drain_s,
        "realised_drain_s": plan.drained_s,
    }


def _pairs(
    assignment: Mapping[str, Mapping[str, str]] | None,
) -> list[tuple[str, list[tuple[str, str]]]] | None:
    if assignment is None:
        return None
    return [(member, sorted(topics.items())) for member, topics in sorted(assignment.items())]


def _time(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)
