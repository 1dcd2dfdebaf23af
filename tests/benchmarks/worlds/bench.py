"""Plans in a closed loop over hours: lag area and moves against no plans, KIP-169 and an oracle.

python -m tests.benchmarks --only worlds [--quick], and for chosen worlds and seeds python -m tests.benchmarks.worlds
"""

import json
import multiprocessing
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.benchmarks.worlds import report, score
from tests.benchmarks.worlds.defects import DEFECTS
from tests.benchmarks.worlds.oracle import Oracle
from tests.benchmarks.worlds.policies import Kip169, Lagwise, NoPlans
from tests.benchmarks.worlds.run import Outcome, Policy, run
from tests.benchmarks.worlds.scenarios import GENERATORS, drawn

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
_QUICK = ("slow member", "unequal members", "drifting hot spot", "80 to 95 % use", "nothing wrong")
"""Worlds of a quick run."""


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Figures, goals and tables of every world."""
    begun = time.perf_counter()
    size, names = (_FEW, _QUICK) if quick else (_SEEDS, tuple(GENERATORS))
    worlds: dict[str, Any] = {}
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, world in zip(names, pool.map(_world, names, [size] * len(names)), strict=True):
            worlds[name] = world
            say(report.line(name, world, seconds=time.perf_counter() - begun))
    before = json.loads(BEFORE.read_text(encoding="utf-8")) if BEFORE.exists() else {}
    goals = score.overall(worlds)
    return {"worlds": worlds, "goals": goals, "tables": report.tables(worlds, goals, before)}


def _world(name: str, n_seeds: int) -> dict[str, Any]:
    """The world's figures."""
    runs = outcomes(name, range(n_seeds), tuple(POLICIES))
    return {
        "policies": score.figures(runs),
        "goals": score.goals(name, runs),
        "why": score.why(runs[score.LAGWISE]),
        "seeds": {
            **seeds(runs[score.LAGWISE]),
            "over_no_plans": score.ratios(runs[score.LAGWISE], runs[score.NO_PLANS]),
        },
    }


def outcomes(name: str, seeds: Iterable[int], policies: Collection[str]) -> dict[str, list[Outcome]]:
    """Each policy's outcomes of the world's seeds."""
    scenarios = [drawn(name, seed) for seed in seeds]
    return {policy: [run(scenario, POLICIES[policy]()) for scenario in scenarios] for policy in policies}


def one_seed(job: tuple[str, int, Collection[str], str | None]) -> dict[str, Any]:
    """Figures of a world's name, one seed, some policies and a defect: a row of `python -m tests.benchmarks.worlds`."""
    name, seed, policies, defect = job
    with DEFECTS[defect]() if defect is not None else nullcontext():
        runs = {policy: found[0] for policy, found in outcomes(name, [seed], policies).items()}
    return {
        "world": name,
        "seed": seed,
        "policies": {policy: score.figures_of_one(one, runs) for policy, one in runs.items()},
        "why": score.why([runs[score.LAGWISE]]) if score.LAGWISE in runs else {},
        "effects": runs[score.LAGWISE].effects if score.LAGWISE in runs else {},
    }


def seeds(runs: list[Outcome]) -> dict[str, list[float]]:
    """What `before.json` holds of a world."""
    return {
        "lag_area": [round(one.lag_area) for one in runs],
        "moves": [one.moves for one in runs],
        "plans": [one.plans for one in runs],
    }
