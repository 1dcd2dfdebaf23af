"""`lagwise recommendations`: decisions about each group, and their reasons."""

from enum import Enum
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from pipeline.errors import MissingTableError
from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import GroupsOption
from pipeline.operate.output import (
    Column,
    Format,
    FormatOption,
    Row,
    WideOption,
    iterate,
    names,
    note,
    plain,
    progress,
    show,
)
from pipeline.tables.reading import Tables, all_of, matches


class Decision(str, Enum):
    """What the planner may decide; for a list of words typer needs an enum."""

    PUBLISH = "publish"
    DRY_RUN = "dry_run"
    UNCHANGED = "unchanged"
    ABSTAIN = "abstain"


_NEWEST_FIRST = [("created_at", "descending"), ("group_id", "ascending"), ("cluster", "ascending")]


def _move_count(row: Row) -> str:
    return str(len(row["moves"] or ()))


def _outcome(row: Row) -> str:
    """What became of the plan published before."""
    found = row["plan"]
    return plain(None) if found is None else f"{found['epoch']} {found['status']}"


_COLUMNS = (
    Column(header="CREATED-AT", name="created_at"),
    Column(header="GROUP", name="group_id"),
    Column(header="DECISION", name="decision"),
    Column(header="EPOCH", name="epoch", is_number=True),
    Column(header="STRATEGY", name="strategy"),
    Column(header="MOVES", name="moves", cell=_move_count, is_number=True),
    Column(header="DRAIN-S-BEFORE", name="drain_s_before", is_number=True),
    Column(header="DRAIN-S-AFTER", name="drain_s_after", is_number=True),
    Column(header="PLAN-SO-FAR", name="plan", cell=_outcome),
    Column(header="REASON", name="reason"),
    Column(header="DRAIN-S-BOUND", name="drain_s_bound", is_number=True, is_wide=True),
    Column(header="IMBALANCE-BEFORE", name="imbalance_before", is_number=True, is_wide=True),
    Column(header="IMBALANCE-AFTER", name="imbalance_after", is_number=True, is_wide=True),
    Column(header="GENERATION", name="base_generation", is_number=True, is_wide=True),
    Column(header="VALID-UNTIL", name="valid_until", is_wide=True),
    Column(header="BATCH", name="batch_id", is_number=True, is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
_ASSIGNMENT = Column(header="ASSIGNMENT", name="assignment")


def recommendations(
    *,
    group: GroupsOption = None,
    decision: Annotated[
        list[Decision] | None,
        typer.Option("--decision", help="Only these decisions; repeatable.", show_default=False),
    ] = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="The newest N.")] = 20,
    detail: Annotated[
        bool, typer.Option("--detail", help="Moves and assignment in full, instead of one line per decision.")
    ] = False,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Decisions about each group with their reasons, newest first.

    The newest decision about each group is there as of its last evaluation; of those before it, the ones that
    differed from the one before them, and one an hour.

    Example: lagwise recommendations --group billing --decision publish --last 1 --detail

    PLAN-SO-FAR is the epoch of the plan published before the row, and its outcome by then: open, applied, partly,
    refused, superseded or expired; --detail adds the cause, and how long the group took to drain.
    json and csv always have moves, assignment and plan.
    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    with progress("reading recommendations"):
        wanted = all_of(
            matches("group_id", group or ()), matches("decision", [one.value for one in decision or ()])
        )
        rows = _decisions(find(tables, config).tables, wanted)
    newest = rows.take(
        pc.sort_indices(rows.drop(["moves", "assignment", "plan"]), sort_keys=_NEWEST_FIRST)[:last]
    )
    if detail and output == "table":
        for row in iterate(newest):
            typer.echo("\n".join(_story(row)))
    else:
        _show(newest, output=output, wide=wide)
    if not newest.num_rows:
        note("no recommendation matches")
        raise typer.Exit(1)


def _decisions(tables: Tables, wanted: pc.Expression | None) -> pa.Table:
    """Rows of the history, and the newest decisions that are not in it because they say the same again."""
    columns = names((*_COLUMNS, _ASSIGNMENT))
    present = ["updated_at" if name == "created_at" else name for name in columns]
    is_again = pc.field("updated_at") > pc.field("recorded_at")
    try:
        # First: what a batch decides meanwhile is in the history by the time that is read.
        again = tables.read("plan_state", columns=present, where=all_of(is_again, wanted))
    except MissingTableError:
        # An earlier version has written these tables, with a row for every decision.
        return tables.read("recommendations", columns=columns, where=wanted)
    recorded = tables.read("recommendations", columns=columns, where=wanted)
    return pa.concat_tables([recorded, again.rename_columns(columns)], promote_options="permissive")


def _show(rows: pa.Table, *, output: Format, wide: bool) -> None:
    columns = _COLUMNS if output == "table" else (*_COLUMNS, _ASSIGNMENT)
    show(rows, columns, output=output, wide=wide)


def _story(row: Row) -> list[str]:
    """One recommendation as a paragraph: figures, then the moves, then the assignment."""
    group, epoch, created_at = (plain(row[name]) for name in ("group_id", "epoch", "created_at"))
    before, after, bound = (_seconds(row[f"drain_s_{name}"]) for name in ("before", "after", "bound"))
    lines = [
        f"{group}  {row['decision']}  epoch {epoch}  {created_at}",
        f"  {plain(row['strategy'])}: {plain(row['reason'])}",
        f"  time to drain: {before} as assigned, {after} under the plan, {bound} at best",
    ]
    if row["plan"] is not None:
        lines.append(f"  {_plan_story(row['plan'])}")
    for move in row["moves"] or ():
        partition = f"{plain(move['topic'])}-{move['partition']}"
        lag = plain(move["lag"])
        lines.append(f"  move {partition}: {plain(move['from'])} -> {plain(move['to'])} (lag {lag})")
    for member, topics in sorted((row["assignment"] or {}).items()):
        held = "; ".join(f"{plain(topic)} {topics[topic]}" for topic in sorted(topics))
        lines.append(f"  {plain(member)}: {held or 'nothing'}")
    return lines


def _plan_story(found: Row) -> str:
    made = f"{found['moves_made']} of {found['moves']} moves made"
    why = f", {plain(found['why'])}" if found["why"] else ""
    predicted, realised = _seconds(found["predicted_drain_s"]), found["realised_drain_s"]
    drained = f"drained in {realised:.1f} s" if realised is not None else "not drained yet"
    return f"plan epoch {found['epoch']}: {found['status']}{why}; {made}; {drained} (predicted {predicted})"


def _seconds(value: float | None) -> str:
    return "never or unknown" if value is None else f"{value:.1f} s"
