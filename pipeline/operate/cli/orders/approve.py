"""`lagwise approve`: publish the plan that waits for an operator, once he has looked at it."""

from collections.abc import Mapping
from typing import Annotated, Any

import pyarrow.compute as pc
import typer

from assignor.protocol.commands import Approval, Orders
from pipeline import clock
from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.config.secret_values import resolve
from pipeline.errors import NotWaitingError
from pipeline.operate.cli.locations import StreamConfigOption, find_config
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.commands import GroupArgument, OutputOption, give, who
from pipeline.operate.cli.tables.recommendations import STORY_COLUMNS, story
from pipeline.operate.output import Row, iterate, plain
from pipeline.planning.state import from_json
from pipeline.tables.reading import Tables

_COLUMNS = (*STORY_COLUMNS, "awaiting_since", "valid_until", "target_hash", "base_hash", "state")


def approve(
    group: GroupArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the next operator.")] = "",
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="ID", help="Approve this plan without asking.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Approve whichever waits, without asking.")
    ] = False,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Publish the plan of a group that waits for approval, as it is shown here, and no other.

    Example: lagwise approve billing --reason INC-4711

    For groups with `plan.dry_run = "approve"`. Shows the plan from the tables and asks. The stream refuses the
    approval if the plan has expired or the group has changed by then; `lagwise recommendations` has the cause.
    In scripts: --plan with the ID that was shown.
    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    if output == "json" and not (yes or plan):
        raise typer.BadParameter("-o json asks no questions: add --plan ID or --yes")
    settings = load(find_config(config))
    row = waiting_row(settings, group)
    found = plan_id(row)
    if plan is not None and plan != found:
        raise NotWaitingError(
            f"plan {plain(plan)} of group {plain(group)} does not wait for approval any more, but {found} does; "
            f"look at it with `lagwise approve {plain(group)}`"
        )
    if output == "text":
        typer.echo("\n".join(_shown(row)))
    if not (yes or plan):
        typer.confirm(f"Publish plan {found}?", abort=True)
    give(
        group,
        lambda held: _changed(held, row, reason=reason),
        then="it then publishes the plan, or `lagwise recommendations` tells why it is refused",
        config=config,
        output=output,
    )


def waiting_row(settings: Config, group: str) -> Row:
    """The row of `plan_state` with the plan of the group that waits for approval.

    Raises:
        NotWaitingError: None does.
        StoreError: The tables cannot be read.
    """
    tables = Tables(settings.tables.root, resolve(settings.tables.storage_options))
    rows = iterate(tables.read("plan_state", columns=_COLUMNS, where=pc.field("group_id") == group))
    row = next(rows, None)
    if row is None:
        raise NotWaitingError(
            f"nothing has been decided about group {plain(group)} yet; check the name, or wait for the next evaluation"
        )
    if row["decision"] != "awaiting_approval":
        raise NotWaitingError(f"no plan of group {plain(group)} waits for approval; {_instead(row)}")
    return row


def plan_id(row: Mapping[str, Any]) -> str:
    """What names the plan of a row of `plan_state`: its target, and the group that its moves start from."""
    return f"{row['target_hash']}-{row['base_hash']}"


def _instead(row: Row) -> str:
    plan = from_json(row["state"]).plan
    if plan is not None and plan.status == "open" and plan.approved_by is not None:
        return f"plan epoch {plan.epoch} is published already, approved by {plain(plan.approved_by)}"
    return f"the newest decision is {plain(row['decision'])}: {plain(row['reason'])}"


def _shown(row: Row) -> list[str]:
    return [
        *story(row),
        f"  waits since {plain(row['awaiting_since'])}, may be approved until {plain(row['valid_until'])}",
        f"  plan {plan_id(row)}",
    ]


def _changed(held: Orders, row: Row, *, reason: str) -> Orders:
    """The orders with the approval.

    Raises:
        NotWaitingError: Another operator has approved the same plan, and the stream has not answered yet.
    """
    approval = Approval(
        target_hash=row["target_hash"],
        base_hash=row["base_hash"],
        reason=reason,
        by=who(),
        at_ms=clock.now_ms(),
    )
    before = held.approval
    is_unanswered = before is not None and before.at_ms > from_json(row["state"]).approval_at_ms
    if before is not None and is_unanswered and before.hashes == approval.hashes:
        raise NotWaitingError(
            f"{plain(before.by)} has approved the plan already, and the stream publishes it with its next batch; "
            "your order was not written"
        )
    return orders_change.approve(held, approval)
