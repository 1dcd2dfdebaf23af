"""`python -m tests.benchmarks.worlds`: chosen worlds, seeds and policies, seed by seed.

python -m tests.benchmarks.worlds --worlds "slow member*" "nothing wrong" --seeds 0-7 --policies "no plans,lagwise"
python -m tests.benchmarks.worlds --defect raw-lag: what the judge alone makes of plans that rest on a wrong belief
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

from pipeline.planning.state import Effect
from tests.benchmarks.worlds import score
from tests.benchmarks.worlds.bench import POLICIES, one_seed
from tests.benchmarks.worlds.defects import DEFECTS
from tests.benchmarks.worlds.effects import GOOD, GOOD_HURT
from tests.benchmarks.worlds.scenarios import GENERATORS

_Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Print ratios of lag areas, plans and moves of each seed, then of each world."""
    arguments = _arguments()
    worlds = [name for name in GENERATORS if any(fnmatchcase(name, one) for one in arguments.worlds)]
    jobs = [(name, seed, arguments.policies, arguments.defect) for seed in arguments.seeds for name in worlds]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(one_seed, jobs):
            rows.append(row)
            _say(
                f"{row['world']}, seed {row['seed']}: {'; '.join(_policies_of(row))}; {_judged(row['effects'])}"
            )
            if arguments.json is not None:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for name in worlds:
        for line in _summary([row for row in rows if row["world"] == name], limit=arguments.limit):
            _say(f"{name}: {line}")
    effects: Counter[str] = Counter()
    for row in rows:
        effects.update(row["effects"])
    _say(f"all: {_judged(effects)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.worlds", description=__doc__)
    parser.add_argument(
        "--worlds", nargs="+", type=_world, default=["*"], metavar="NAME", help="* as in files"
    )
    parser.add_argument("--seeds", type=_seeds, default="0-3", metavar="0-7,11")
    parser.add_argument(
        "--policies",
        type=_policies,
        default=f"{score.NO_PLANS},{score.LAGWISE}",
        help=f"of {', '.join(POLICIES)}",
    )
    parser.add_argument(
        "--defect", choices=DEFECTS, help="put back, so that only the judge keeps plans from harm"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=1.05, help="lagwise over no plans, above which a seed is named"
    )
    parser.add_argument("--json", type=Path, help="file for the figures of each seed, written as they come")
    return parser.parse_args()


def _world(pattern: str) -> str:
    if not any(fnmatchcase(name, pattern) for name in GENERATORS):
        raise argparse.ArgumentTypeError(f"{pattern!r} is none of {'; '.join(GENERATORS)}")
    return pattern


def _seeds(text: str) -> list[int]:
    bounds = [[int(bound) for bound in part.split("-")] for part in text.split(",")]
    return [seed for bound in bounds for seed in range(bound[0], bound[-1] + 1)]


def _policies(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= POLICIES.keys():
        raise argparse.ArgumentTypeError(f"{text!r} is no list of {', '.join(POLICIES)}")
    return names


def _policies_of(row: Mapping[str, Any]) -> Iterator[str]:
    for policy, figures in row["policies"].items():
        ratios = [f"{figures[name]:.3f} {name}" for name in figures if name.startswith("over")]
        counts = [f"{figures[name]:g} {name}" for name in ("plans", "moves", "moves_back")]
        yield f"{policy}: {', '.join(ratios + counts)}"


def _judged(effects: Mapping[str, int]) -> str:
    """Plans by effect, and how many of those were judged hurt that had less lag ahead of them than no plan."""
    counts = [f"{effects.get(effect, 0)} {effect}" for effect in get_args(Effect)]
    return (
        f"judged: {', '.join(counts)}; {effects.get(GOOD_HURT, 0)} of {effects.get(GOOD, 0)} good plans hurt"
    )


def _summary(rows: _Rows, *, limit: float) -> Iterator[str]:
    """A line per policy: least, median and most of its ratios, its plans and moves; then the seeds above the limit."""
    for policy in rows[0]["policies"]:
        of = [row["policies"][policy] for row in rows]
        ratios = [_three(name, [one[name] for one in of]) for name in of[0] if name.startswith("over")]
        sums = [f"{sum(one[name] for one in of):g} {name}" for name in ("plans", "moves")]
        planned = f"plans in {sum(one['plans'] > 0 for one in of)} of {len(of)} seeds"
        yield f"{policy}: {', '.join(ratios + sums)}, {planned}"
    above = [
        f"{row['seed']} ({ratio:.3f})"
        for row in rows
        if (ratio := row["policies"].get(score.LAGWISE, {}).get("over_no_plans", 0.0)) > limit
    ]
    if above:
        yield f"more than {limit:g} times the lag of no plans: seeds {', '.join(above)}"


def _three(name: str, values: Sequence[float]) -> str:
    return f"{name} {min(values):.3f} / {statistics.median(values):.3f} / {max(values):.3f}"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201 - what the command is for


if __name__ == "__main__":
    main()
