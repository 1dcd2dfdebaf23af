"""Quality of assignments: how soon a group is drained, at what price, at one moment and over an hour.

python -m tests.benchmarks --only quality [--quick]
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks import quality_plot, quality_still
from tests.benchmarks.quality_policies import (
    KIP_169_EVERY_MINUTE,
    LAG_STICKY,
    Policy,
    ablations,
    main_policies,
)
from tests.benchmarks.quality_world import Outcome, World
from tests.benchmarks.workloads import FEW, FRAME_S, GENERATORS, Generator

Say = Callable[[str], None]

_PLOT = Path(__file__).parents[2] / "deploy" / "docs" / "quality.svg"
_MOST_RATIO = 1.05
_MOST_SHARE_OF_MOVES = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    groups: int
    """Groups of each kind at one moment."""
    seeds: int
    """Runs of each workload."""
    horizon_s: int
    generators: tuple[Generator, ...]


_FULL = Size(groups=25, seeds=2, horizon_s=3600, generators=GENERATORS)
_QUICK = Size(groups=2, seeds=1, horizon_s=900, generators=FEW[:2])


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Figures, goals and tables; a full run also draws the picture of the docs."""
    size = _QUICK if quick else _FULL
    begun = time.perf_counter()
    by_kind = quality_still.compare(groups=size.groups)
    still = quality_still.pooled(by_kind)
    say(f"at one moment: {time.perf_counter() - begun:.0f} s")
    over_time = {policy.name: _outcomes(policy, size, size.generators) for policy in main_policies()}
    say(f"over time: {time.perf_counter() - begun:.0f} s since the beginning")
    few = size.generators if quick else FEW
    ablated = {policy.name: _outcomes(policy, size, few) for policy in ablations()}
    say(f"ablations: {time.perf_counter() - begun:.0f} s since the beginning")
    figures: dict[str, Any] = {
        "groups_of_each_kind": size.groups,
        "hours_of_each_workload": size.seeds * size.horizon_s / 3600,
        "still": {name: tally.figures() for name, tally in still.items()},
        "still_by_kind": {
            kind: {name: tally.figures() for name, tally in tallies.items()}
            for kind, tallies in by_kind.items()
        },
        "over_time": {name: _summary(outcomes) for name, outcomes in over_time.items()},
        "ablations": {name: _summary(outcomes) for name, outcomes in ablated.items()},
        "lag_by_workload": _by_workload(over_time),
    }
    figures["goals"] = _goals(figures, quality_still.worse_than_rivals(still))
    figures["tables"] = _tables(figures)
    if not quick:
        quality_plot.draw(figures, _PLOT)
    return figures


def _outcomes(policy: Policy, size: Size, generators: Sequence[Generator]) -> dict[str, list[Outcome]]:
    """The outcomes by workload, one per seed; every policy meets the same films."""
    outcomes: dict[str, list[Outcome]] = {}
    for generator in generators:
        for seed in range(size.seeds):
            film = generator(np.random.default_rng(seed), size.horizon_s // FRAME_S)
            outcomes.setdefault(film.name, []).append(World(film, policy, seed).run())
    return outcomes


def _summary(outcomes: dict[str, list[Outcome]]) -> dict[str, float]:
    """Medians of times, sums of the rest, over all workloads and seeds."""
    runs = [outcome for of in outcomes.values() for outcome in of]
    return {
        "lag_mega_record_s": round(sum(run.lag_seconds for run in runs) / 1e6, 1),
        "on_time_from_s_median": statistics.median(run.on_time_from_s for run in runs),
        "worst_delay_s_mean": round(statistics.fmean(run.worst_delay_s for run in runs), 1),
        "moves": sum(run.moves for run in runs),
        "r_score": round(sum(run.r_score for run in runs), 1),
        "pause_partition_s": round(sum(run.pause_s for run in runs)),
        "rebalances": sum(run.rebalances for run in runs),
    }


def _by_workload(over_time: dict[str, dict[str, list[Outcome]]]) -> dict[str, dict[str, float]]:
    """Mega record-seconds of a run, mean over the seeds: a row per workload, a column per policy."""
    workloads = next(iter(over_time.values()))
    return {
        workload: {
            name: round(statistics.fmean(run.lag_seconds for run in outcomes[workload]) / 1e6, 1)
            for name, outcomes in over_time.items()
        }
        for workload in workloads
    }


def _goals(figures: dict[str, Any], worse: dict[str, int]) -> dict[str, Any]:
    """What lag-sticky is held to; nothing while there is none."""
    if LAG_STICKY.name not in figures["over_time"]:
        return {}
    ratio = figures["still"][quality_still.BEST]["drain_over_bound_median"]
    ours = figures["over_time"][LAG_STICKY.name]["moves"]
    theirs = figures["over_time"][KIP_169_EVERY_MINUTE.name]["moves"]
    return {
        "drain over bound, median": _goal(ratio, ratio <= _MOST_RATIO, f"<= {_MOST_RATIO}"),
        "groups that a rival drains sooner": _goal(sum(worse.values()), not any(worse.values()), "0"),
        "moves over those of KIP-169 every minute": _goal(
            round(ours / theirs, 5), ours <= _MOST_SHARE_OF_MOVES * theirs, f"<= {_MOST_SHARE_OF_MOVES}"
        ),
    }


def _goal(value: float, is_met: bool, goal: str) -> dict[str, Any]:
    return {"is": value, "goal": goal, "met": "yes" if is_met else "no"}


def _tables(figures: dict[str, Any]) -> list[dict[str, Any]]:
    titles = {
        "still": "at one moment",
        "over_time": "over time, all workloads",
        "ablations": "over time, four workloads",
        "lag_by_workload": "lag of an hour, mega record-s",
        "goals": "lag-sticky",
    }
    return [_table(title, figures[key]) for key, title in titles.items() if figures[key]]


def _table(title: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    keys = list(next(iter(rows.values())))
    header = [title, *(key.replace("_", " ") for key in keys)]
    return {"header": header, "rows": [[name, *(row[key] for key in keys)] for name, row in rows.items()]}
