"""`lagwise approve`: publish a plan that waits for approval, after showing it."""

from typing import Annotated

import typer

from pipeline.operate.cli.locations import StreamConfigOption, find, find_config
from pipeline.operate.cli.orders.approval import with_approval
from pipeline.operate.cli.orders.commands import GroupArgument, OutputOption, ReasonOption, give, who
from pipeline.operate.cli.tables.lag import warn_if_late
from pipeline.operate.cli.tables.recommendations import STORY_COLUMNS, story
from pipeline.operate.listings.waiting import check_is, plan_id, waiting_row
from pipeline.operate.output import Row, plain


def approve(
    group: GroupArgument,
    *,
    reason: ReasonOption = "",
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="ID", help="Approve the plan with this ID, without asking."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Approve whichever plan waits, without asking.")
    ] = False,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Show the plan that waits for approval, and publish it.

    Example: lagwise approve billing --reason INC-4711

    For groups with `plan.dry_run = "approve"`. It shows the plan from the tables, asks, and publishes exactly this
    plan. In scripts, give --plan with the ID that was shown.

    The stream refuses the approval if the plan has expired or the group has changed by then; `lagwise recommendations`
    has the cause.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    if output == "json" and not (yes or plan):
        raise typer.BadParameter("-o json asks no questions: add --plan ID or --yes")
    source = find(None, find_config(config))
    row = waiting_row(source.tables, group, STORY_COLUMNS)
    if plan is not None:
        check_is(row, group, plan)
    warn_if_late(source)
    if output == "text":
        typer.echo("\n".join(_shown(row)))
    if not (yes or plan):
        typer.confirm(f"Publish plan {plan_id(row)}?", abort=True)
    give(
        group,
        lambda held: with_approval(held, row, reason=reason, by=who()),
        then="it then publishes the plan, or `lagwise recommendations` says why not",
        config=config,
        output=output,
    )


def _shown(row: Row) -> list[str]:
    return [
        *story(row),
        f"  waiting since {plain(row['awaiting_since'])}, can be approved until {plain(row['valid_until'])}",
        f"  plan {plan_id(row)}",
    ]
