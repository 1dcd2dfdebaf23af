"""Plans in a closed loop over hours: lag area and moves against no plans, KIP-169 and an oracle.

python -m tests.benchmarks --only worlds [--quick]
"""

import json
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.worlds import report, score
from tests.benchmarks.worlds.oracle import Oracle
from tests.benchmarks.worlds.policies import Kip169, Lagwise, NoPlans
from tests.benchmarks.worlds.run import Outcome, Policy, run
from tests.benchmarks.worlds.scenarios import GENERATORS, Generator

Say = Callable[[str], None]

BEFORE = Path(__file__).parent / "before.json"
"""Lag area, moves and plans of lagwise before it learned capacities: world -> figure -> one entry per seed."""
POLICIES: Mapping[str, Callable[[], Policy]] = {
    score.NO_PLANS: NoPlans,
    score.KIP_169: Kip169,
    score.LAGWISE: Lagwise,
    score.ORACLE: Oracle,
}
_SEEDS, _FEW = 20, 1
_QUICK = (0, 2, 6, 10, 11)
"""Worlds of a quick run."""


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Figures, goals and tables of every world."""
    begun = time.perf_counter()
    size, numbers = (_FEW, _QUICK) if quick else (_SEEDS, range(len(GENERATORS)))
    worlds: dict[str, Any] = {}
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, world in pool.map(_world, numbers, [size] * len(numbers)):
            worlds[name] = world
            say(report.line(name, world, seconds=time.perf_counter() - begun))
    before = json.loads(BEFORE.read_text(encoding="utf-8")) if BEFORE.exists() else {}
    goals = score.overall(worlds)
    return {"worlds": worlds, "goals": goals, "tables": report.tables(worlds, goals, before)}


def _world(number: int, n_seeds: int) -> tuple[str, dict[str, Any]]:
    """The world's name and figures."""
    name, runs = outcomes(GENERATORS[number], number, n_seeds=n_seeds)
    return name, {
        "policies": score.figures(runs),
        "goals": score.goals(runs),
        "why": score.why(runs[score.LAGWISE]),
        "seeds": seeds(runs[score.LAGWISE]),
    }


def outcomes(generator: Generator, number: int, *, n_seeds: int) -> tuple[str, dict[str, list[Outcome]]]:
    """The world's name, and each policy's outcomes of the same seeds."""
    found: dict[str, list[Outcome]] = {policy: [] for policy in POLICIES}
    for seed in range(n_seeds):
        scenario = generator(np.random.default_rng([number, seed]))
        for policy, make in POLICIES.items():
            found[policy].append(run(scenario, make()))
    return scenario.name, found


def seeds(runs: list[Outcome]) -> dict[str, list[float]]:
    """What `before.json` holds of a world."""
    return {
        "lag_area": [round(one.lag_area) for one in runs],
        "moves": [one.moves for one in runs],
        "plans": [one.plans for one in runs],
    }
