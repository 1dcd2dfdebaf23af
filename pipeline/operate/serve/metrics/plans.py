"""Samples of plans: the newest decision about each group, and the outcome of its newest published plan."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipeline.exposition import Family
from pipeline.operate.serve.metrics import families
from pipeline.operate.serve.metrics.text import Labels, Samples, samples
from pipeline.operate.serve.views.facts import Facts
from pipeline.operate.serve.views.plans import DECIDED, EFFECTS, KINDS, OUTCOMES, Outcome, Plan, plans_of


def plan_samples(facts: Facts) -> Iterator[Samples]:
    """Samples of every group that has a decision."""
    plans = list(plans_of(facts))
    yield _by(families.PLAN_STATE, "state", _states(plans))
    yield _by(families.PLAN_HELD_BACK, "guard", ((one, one.guard, 1) for one in plans if one.guard))
    yield _by(families.PLAN_DRAIN_SECONDS, "when", _drain_seconds(plans))
    yield _by(families.PLAN_MOVES, "state", _moves(plans))
    yield _each(families.PLAN_PROBATION, ((one, _s(one.row["probation_until"])) for one in plans))
    yield from _outcomes([(one, one.outcome) for one in plans if one.outcome])


def _outcomes(published: list[tuple[Plan, Outcome]]) -> Iterator[Samples]:
    """Samples of groups for which a plan was ever published."""
    judged = [(one, plan.effect) for one, plan in published if plan.effect]
    effects = ((one, name.replace(" ", "_"), int(name == found)) for one, found in judged for name in EFFECTS)
    yield _by(families.PLAN_EFFECT, "effect", effects)
    acks = ((one, kind, len(one.acks[kind])) for one, _ in published if not one.is_kip848 for kind in KINDS)
    yield _by(families.PLAN_ACKS, "kind", acks)
    yield _each(families.PLAN_ACKS_MISSING, ((one, one.acks_missing) for one, _ in published))
    yield _each(families.PLAN_EPOCH, ((one, plan.epoch) for one, plan in published))
    yield _each(families.PLAN_PUBLISHED, ((one, _s(plan.published_at)) for one, plan in published))
    yield _each(families.PLAN_VALID_UNTIL, ((one, _s(plan.valid_until)) for one, plan in published))


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
            yield one, "made", one.outcome.moves_made


def _by(family: Family, label: str, found: Iterable[tuple[Plan, str | None, float | None]]) -> Samples:
    """A family with one more label than the group's."""
    plans, values, numbers = _columns(found, 3)
    return _samples(family, plans, numbers, **{label: pa.array(values, pa.string())})


def _each(family: Family, found: Iterable[tuple[Plan, float | None]]) -> Samples:
    """A family with one sample for each group."""
    return _samples(family, *_columns(found, 2))


def _columns(rows: Iterable[tuple[Any, ...]], n: int) -> list[Sequence[Any]]:
    return list(zip(*rows, strict=True)) or [()] * n


def _samples(
    family: Family, plans: Sequence[Plan], numbers: Sequence[float | None], **more: pa.Array
) -> Samples:
    names = {"cluster_name": "cluster", "group": "group_id"}
    keys = {label: pa.array([one.row[name] for one in plans], pa.string()) for label, name in names.items()}
    # Floats are written without a fraction if they are whole.
    return samples(family, Labels({**keys, **more}), pa.array(numbers, pa.float64()))


def _s(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
