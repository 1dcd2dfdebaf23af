"""Plans that wait for approval, and their ids."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.compute as pc

from pipeline import shell
from pipeline.errors import NotWaitingError
from pipeline.operate.output import Row, iterate, plain
from pipeline.planning.state import from_json
from pipeline.tables.reading import Readable

_COLUMNS = ("decision", "reason", "target_hash", "base_hash", "awaiting_since", "valid_until", "state")


def waiting_row(tables: Readable, group: str, columns: Iterable[str] = ()) -> Row:
    """The row of `plan_state` with the group's plan that waits for approval: these columns and those of approval.

    Raises:
        NotWaitingError: No plan waits.
        StoreError: The tables cannot be read.
    """
    wanted = list(dict.fromkeys((*columns, *_COLUMNS)))
    row = next(iterate(tables.read("plan_state", columns=wanted, where=pc.field("group_id") == group)), None)
    if row is None:
        raise NotWaitingError(
            f"nothing has been decided about group {plain(group)} yet; check the name, or wait for the next evaluation"
        )
    if row["decision"] != "awaiting_approval":
        raise NotWaitingError(f"no plan of group {plain(group)} waits for approval; {_instead(row)}")
    return row


def plan_id(row: Mapping[str, Any]) -> str:
    """Id of the plan of a row of `plan_state`: hashes of its target, and of the group that its moves start from."""
    return f"{row['target_hash']}-{row['base_hash']}"


def check_is(row: Mapping[str, Any], group: str, plan: str) -> None:
    """Check that the waiting plan is the one that an operator has seen.

    Raises:
        NotWaitingError: Another one waits.
    """
    if plan != plan_id(row):
        raise NotWaitingError(
            f"plan {plain(plan)} of group {plain(group)} no longer waits for approval, but {plan_id(row)} does; "
            f"look at it with {shell.command('approve', group)}, or on its page"
        )


def _instead(row: Row) -> str:
    plan = from_json(row["state"]).plan
    if plan is not None and plan.status == "open" and plan.approved_by is not None:
        return f"plan epoch {plan.epoch} is published already, approved by {plain(plan.approved_by)}"
    return f"the newest decision is {plain(row['decision'])}: {plain(row['reason'])}"
