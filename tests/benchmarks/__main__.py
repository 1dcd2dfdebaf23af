"""`python -m tests.benchmarks [--only NAME …] [--quick]`: the figures of `make bench`.

Each part runs in a process of its own, since a JVM's memory is settled when it starts. A run leaves one JSON
file with everything and one Markdown file with the tables in `tests/benchmarks/results`.
"""

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from typing import Any

from tests.benchmarks import machine, results
from tests.benchmarks.parts import PARTS, measure, say


def main() -> None:
    """Run the parts that were asked for, and write down what they say."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument(
        "--quick", action="store_true", help="fewer records and repetitions, to try things out"
    )
    arguments = parser.parse_args()
    begun = datetime.now(tz=timezone.utc)
    run: dict[str, Any] = {
        "at": begun.isoformat(timespec="seconds"),
        "quick": arguments.quick,
        "machine": machine.facts(),
        "parts": {},
    }
    say(f"machine: {run['machine']}")
    for name in arguments.only:
        say(f"{name}: begins")
        run["parts"][name] = _alone(name, quick=arguments.quick)
        # After every part, so that one that fails does not take the others' figures with it.
        paths = results.write(run, f"bench-{begun:%Y%m%dT%H%M%SZ}")
    for less, more, *exponents in results.growth(run["parts"]):
        say(
            f"batch time from {less:,} to {more:,} rows: to the power of {' and, without plan, '.join(map(str, exponents))}"
        )
    say(f"written: {', '.join(str(path) for path in paths)}")


def _alone(name: str, *, quick: bool) -> dict[str, Any]:
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, name, quick=quick).result()


if __name__ == "__main__":
    main()
