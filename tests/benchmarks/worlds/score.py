"""Figures of a world from its outcomes, and the goals that they are held to."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.benchmarks.worlds.run import Outcome

NO_PLANS, KIP_169, LAGWISE, ORACLE = "no plans", "KIP-169 every minute", "lagwise", "oracle"
_MOST_OVER_ORACLE, _MOST_OVER_ORACLE_WHERE_GOOD = 1.25, 1.05
_GOOD = frozenset(
    {
        "slow member",
        "recovering member",
        "low rate, hours behind",
        "a day",
        "80 to 95 % use",
        "nothing wrong",
    }
)
"""Worlds whose median over the oracle is at most `_MOST_OVER_ORACLE_WHERE_GOOD` already."""
_MOST_OVER_NO_PLANS = 1.25
_USUALLY_OVER_NO_PLANS, _MOST_SHARE_ABOVE = 1.05, 0.01
_NOTHING_WRONG, _MOST_SHARE_PLANNED = "nothing wrong", 0.05
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


def figures_of_one(outcome: Outcome, runs: Mapping[str, Outcome]) -> dict[str, float]:
    """Figures of one run, with its lag area over those of the policies that there are."""
    over = {ORACLE: "over_oracle", NO_PLANS: "over_no_plans"}
    return {
        **{name: figure(outcome) for name, figure in _FIGURES.items()},
        **{name: outcome.lag_area / runs[policy].lag_area for policy, name in over.items() if policy in runs},
    }


def ratios(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> list[float]:
    """Lag area over that of another policy, seed by seed."""
    return [one.lag_area / other.lag_area for one, other in zip(outcomes, others, strict=True)]


def goals(name: str, runs: Runs) -> dict[str, Any]:
    """What lagwise is held to in this world."""
    ours = runs[LAGWISE]
    over_oracle = _MOST_OVER_ORACLE_WHERE_GOOD if name in _GOOD else _MOST_OVER_ORACLE
    found = {
        "median over oracle": _goal(statistics.median(ratios(ours, runs[ORACLE])), over_oracle),
        "worst over no plans": _goal(max(ratios(ours, runs[NO_PLANS])), _MOST_OVER_NO_PLANS),
    }
    if name.startswith(_NOTHING_WRONG):
        planned = statistics.mean(one.plans > 0 for one in ours)
        found["share of seeds with a plan"] = _goal(planned, _MOST_SHARE_PLANNED)
    return found


def overall(worlds: Mapping[str, Any]) -> dict[str, Any]:
    """What lagwise is held to in all worlds together."""
    ours, theirs = (
        sum(world["policies"][policy]["moves"]["sum"] for world in worlds.values())
        for policy in (LAGWISE, KIP_169)
    )
    over = [ratio for world in worlds.values() for ratio in world["seeds"]["over_no_plans"]]
    above = statistics.mean(ratio > _USUALLY_OVER_NO_PLANS for ratio in over)
    return {
        "moves over KIP-169": _goal(ours / max(theirs, 1), _MOST_SHARE_OF_MOVES),
        f"share of runs above {_USUALLY_OVER_NO_PLANS} of no plans": _goal(above, _MOST_SHARE_ABOVE),
    }


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
