"""`lagwise explain`: the answer of a strategy to a case in words and tables, without any cluster."""

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from assignor.cases import explanation
from assignor.cases.input import read_document
from assignor.errors import AssignorError
from assignor.evaluation.drain.words import time_in_words
from assignor.strategies.names import LAG_STICKY
from assignor.strategies.registry import strategy
from pipeline.operate.cli.assign import StrategyName
from pipeline.operate.output import NONE, Column, Row, note, partition_text, plain, show

_GROUP = "(group)"


def _time(name: str) -> Callable[[Row], str]:
    """A cell with a time, which is unknown without a capacity."""

    def cell(row: Row) -> str:
        if row["capacity"] is None:
            return NONE
        return "never" if row[name] is None else time_in_words(row[name])

    return cell


def _bound(row: Row) -> str:
    """A cell with the lower bound of the drain time, which only the group has."""
    return _time("drain_s_bound")(row) if row["member"] == _GROUP else ""


def _record_seconds(row: Row) -> str:
    saved = row["saves_record_s"]
    return NONE if saved is None else f"{saved:,.0f}"


def _sooner(row: Row) -> str:
    """A cell with the time that the move saves the group."""
    if row["saves_record_s"] is None:
        return NONE
    with_s, without_s = row["drain_s_after"], row["drain_s_without"]
    if with_s is None:
        return "never anyway" if without_s is None else "makes it never"
    if without_s is None:
        return "never without"
    sooner_s = without_s - with_s
    return time_in_words(sooner_s) if sooner_s >= 0 else f"-{time_in_words(-sooner_s)}"


_MEMBERS = (
    Column(header="MEMBER", name="member"),
    Column(header="PARTITIONS", name="partitions_before", is_number=True),
    Column(header="AFTER", name="partitions_after", is_number=True),
    Column(header="LAG", name="lag_before", is_number=True),
    Column(header="AFTER", name="lag_after", is_number=True),
    Column(header="DRAINED-IN", name="drain_s_before", cell=_time("drain_s_before"), is_number=True),
    Column(header="AFTER", name="drain_s_after", cell=_time("drain_s_after"), is_number=True),
    Column(header="BOUND", name="drain_s_bound", cell=_bound, is_number=True),
)
_MOVES = (
    Column(header="MOVE", name="partition", cell=partition_text),
    Column(header="FROM", name="from"),
    Column(header="TO", name="to"),
    Column(header="LAG", name="lag", is_number=True),
    Column(header="SOONER-BY", name="drain_s_without", cell=_sooner, is_number=True),
    Column(header="RECORD-SECONDS-SAVED", name="saves_record_s", cell=_record_seconds, is_number=True),
)


def explain(
    strategy_name: StrategyName = LAG_STICKY,
    *,
    output: Annotated[
        Literal["table", "json"],
        typer.Option("--output", "-o", help="Text for people, or json, one line per case, for programs."),
    ] = "table",
) -> None:
    """Explain an assignment: what moves, why, and what it gains.

    Example: lagwise explain < assignor/cases/examples/lag-sticky.json

    Cases come from stdin, one per line, as for `lagwise assign`.

    BOUND is a time that no assignment can beat. SOONER-BY is the time that the group would lose without that move.

    Exit status: 0 all cases were explained, 1 some could not be explained (see stderr), 2 wrong usage.
    """
    tell = _tell if output == "table" else _tell_json
    failed = False
    for line in sys.stdin:
        if line.strip():
            try:
                tell(explanation.explain(read_document(line), strategy(strategy_name)))
            except AssignorError as error:
                note(f"lagwise: {error}")
                failed = True
    raise typer.Exit(int(failed))


def _tell_json(explanation: dict[str, Any]) -> None:
    typer.echo(json.dumps(explanation, separators=(",", ":"), allow_nan=False))


def _tell(explanation: dict[str, Any]) -> None:
    typer.echo(f"{explanation['strategy']}: {plain(explanation['summary'])}")
    if explanation["reason"]:
        typer.echo(f"Why: {plain(explanation['reason'])}")
    members = [member | {"drain_s_bound": None} for member in explanation["members"]]
    if members:
        typer.echo()
        show([*members, _total(explanation)], _MEMBERS, output="table")
    if explanation["moves"]:
        typer.echo()
        after = {"drain_s_after": explanation["drain_s_after"]}
        show([move | after for move in explanation["moves"]], _MOVES, output="table")


def _total(explanation: dict[str, Any]) -> dict[str, Any]:
    """The last row of the members' table: sums, and the times of the group."""
    members = explanation["members"]
    sums = {
        name: sum(member[name] for member in members)
        for name in ("partitions_before", "partitions_after", "lag_before", "lag_after")
    }
    times = {name: explanation[name] for name in ("drain_s_before", "drain_s_after", "drain_s_bound")}
    return {"member": _GROUP, "capacity": members[0]["capacity"]} | sums | times
