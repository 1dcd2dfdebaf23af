"""`lagwise recommendations`: decisions about each group, and their reasons."""

from enum import Enum
from typing import Annotated

import typer

from pipeline import shell
from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import GroupsOption
from pipeline.operate.listings.decisions import (
    ASSIGNMENT,
    COLUMNS,
    EFFECT_WHY,
    decisions,
    drain_words,
    newest,
    plan_story,
)
from pipeline.operate.output import (
    FormatOption,
    Row,
    WideOption,
    end_without,
    iterate,
    partition_text,
    plain,
    progress,
    show,
)
from pipeline.tables.reading import all_of, matches


class Decision(str, Enum):
    """Decisions of the planner, as an enum because typer needs one for a list of choices."""

    PUBLISH = "publish"
    DRY_RUN = "dry_run"
    ADVICE = "advice"
    AWAITING_APPROVAL = "awaiting_approval"
    UNCHANGED = "unchanged"
    ABSTAIN = "abstain"


def recommendations(
    *,
    group: GroupsOption = None,
    decision: Annotated[
        list[Decision] | None,
        typer.Option(
            "--decision",
            metavar="DECISION",
            help="Only publish, dry_run, advice, awaiting_approval, unchanged or abstain; repeatable.",
        ),
    ] = None,
    last: Annotated[int, typer.Option("--last", "-n", metavar="N", min=1, help="The newest N.")] = 20,
    detail: Annotated[
        bool, typer.Option("--detail", help="Moves and assignment in full, instead of one line per decision.")
    ] = False,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Decisions about groups with reasons, newest first.

    Example: lagwise recommendations --group billing --last 1 --detail

    The newest decision about each group is as of its last evaluation. The list also has earlier decisions that
    differed from the one before them, and one an hour.

    PLAN-SO-FAR is the epoch of the plan published before the row, and its outcome by then: open, applied, partly,
    refused, superseded or expired, and helped or hurt where that is known. --detail adds the cause, the evidence, and
    how long the group took to drain. json and csv always have moves, assignment and plan.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    with progress("reading recommendations"):
        wanted = all_of(
            matches("group_id", group or ()), matches("decision", [one.value for one in decision or ()])
        )
        rows = newest(decisions(find(tables, config).tables, wanted), last)
    if detail and output == "table":
        for row in iterate(rows):
            typer.echo("\n".join(story(row)))
    else:
        more = () if output == "table" else (ASSIGNMENT, EFFECT_WHY)
        show(rows, (*COLUMNS, *more), output=output, wide=wide)
    end_without(rows, "no recommendation matches")


STORY_COLUMNS = (
    *("group_id", "epoch", "decision", "strategy", "reason"),
    *("drain_s_before", "drain_s_after", "drain_s_bound", "capacity_known"),
    *("plan", "plan_effect", "plan_effect_why", "probation_until", "moves", "assignment", "updated_at"),
)
"""Columns of `plan_state` that `story` needs."""


def story(row: Row) -> list[str]:
    """A recommendation as a paragraph: figures, moves and assignment."""
    group, epoch = plain(row["group_id"]), plain(row["epoch"])
    created_at = plain(row["created_at"] if "created_at" in row else row["updated_at"])
    lines = [
        f"{group}  {row['decision']}  epoch {epoch}  {created_at}",
        f"  {plain(row['strategy'])}: {plain(row['reason'])}",
    ]
    if row["assignment"] is not None:
        before, after, bound = (drain_words(row, f"drain_s_{name}") for name in ("before", "after", "bound"))
        lines.append(f"  time to drain: {before} as assigned, {after} under the plan, {bound} at best")
    if row["plan"] is not None:
        lines.append(f"  {plan_story(row)}")
    if row["probation_until"] is not None:
        lines.append(
            f"  on probation until {plain(row['probation_until'])}; "
            f"{shell.command('resume', row['group_id'])} ends it"
        )
    for move in row["moves"] or ():
        owners = f"{plain(move['from'])} -> {plain(move['to'])}"
        lines.append(f"  move {partition_text(move)}: {owners} (lag {plain(move['lag'])})")
    for member, topics in sorted((row["assignment"] or {}).items()):
        held = "; ".join(f"{plain(topic)} {topics[topic]}" for topic in sorted(topics))
        lines.append(f"  {plain(member)}: {held or 'nothing'}")
    return lines
