"""`lagwise assign`: a strategy on cases from stdin, without any cluster."""

import sys
import time
from typing import Annotated, TypeAlias

import typer

from assignor.cases.run import run_lines
from assignor.strategies.registry import STRATEGIES


def known_strategy(name: str) -> str:
    """The name, if there is such a strategy.

    Raises:
        typer.BadParameter: There is none.
    """
    if name not in STRATEGIES:
        raise typer.BadParameter(f"there is no strategy {name!r}; write one of {', '.join(STRATEGIES)}")
    return name


StrategyName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--strategy", "-s", metavar="NAME", callback=known_strategy, help=f"One of: {', '.join(STRATEGIES)}."
    ),
]


def assign(strategy_name: StrategyName) -> None:
    """Assign partitions: a JSON case per line, a result per line.

    Example: lagwise assign -s lag-aware < assignor/cases/examples/lag-aware.json

    Cases come from stdin, results go to stdout; deploy/docs/assignors.md describes both.

    Exit status: 0 all cases were assigned, 1 some could not be assigned (their lines have the cause), 2 wrong usage.
    """
    raise typer.Exit(run_lines(sys.stdin, _write, strategy_name=strategy_name, clock=time.perf_counter))


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
