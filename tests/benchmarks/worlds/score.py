"""Figures of a world from its outcomes, and the goals that they are held to."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.benchmarks.worlds.run import Outcome

NO_PLANS, KIP_169, LAGWISE, ORACLE = "no plans", "KIP-169 every minute", "lagwise", "oracle"
_MOST_OVER_ORACLE = 1.25
_MOST_OVER_NO_PLANS = 1.02
_MOST_SHARE_OF_MOVES = 0.01
_FIGURES: Mapping[str, Callable[[Outcome], float]] = {
    "lag_area": lambda outcome: outcome.lag_area,
    "late_h": lambda outcome: outcome.late_h,
    "moves": lambda outcome: outcome.moves,
    "moves_back": lambda outcome: outcome.moves_back,
    "plans": lambda outcome: outcome.plans,
}

Runs = Mapping[str, Sequence[Outcome]]
"""Policy -> outcomes, one per seed; the same seeds for each."""


def figures(runs: Runs) -> dict[str, Any]:
    """Per policy: least, median, most and sum of each figure over the seeds."""
    return {
        policy: {
            **{name: _spread([figure(one) for one in outcomes]) for name, figure in _FIGURES.items()},
            "over_oracle": _spread(ratios(outcomes, runs[ORACLE])),
            "over_no_plans": _spread(ratios(outcomes, runs[NO_PLANS])),
        }
        for policy, outcomes in runs.items()
    }


def ratios(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> list[float]:
    """Lag area over that of another policy, seed by seed."""
    return [one.lag_area / other.lag_area for one, other in zip(outcomes, others, strict=True)]


def goals(runs: Runs) -> dict[str, Any]:
    """What lagwise is held to in this world."""
    ours = runs[LAGWISE]
    return {
        "median over oracle": _goal(statistics.median(ratios(ours, runs[ORACLE])), _MOST_OVER_ORACLE),
        "worst over no plans": _goal(max(ratios(ours, runs[NO_PLANS])), _MOST_OVER_NO_PLANS),
    }


def overall(worlds: Mapping[str, Any]) -> dict[str, Any]:
    """What lagwise is held to in all worlds together."""
    ours, theirs = (
        sum(world["policies"][policy]["moves"]["sum"] for world in worlds.values())
        for policy in (LAGWISE, KIP_169)
    )
    return {"moves over KIP-169": _goal(ours / max(theirs, 1), _MOST_SHARE_OF_MOVES)}


def why(outcomes: Sequence[Outcome], *, most: int = 8) -> dict[str, float]:
    """The most frequent decisions with their reasons, as shares of all evaluations."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.reasons)
    total = max(sum(counts.values()), 1)
    return {reason: round(count / total, 3) for reason, count in counts.most_common(most)}


def _goal(value: float, most: float) -> dict[str, Any]:
    return {"is": round(value, 4), "goal": most, "met": value <= most}


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
        "sum": round(sum(values), 3),
    }
