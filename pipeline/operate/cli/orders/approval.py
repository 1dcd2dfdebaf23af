"""The order that approves a waiting plan, for the command and the page."""

from assignor.protocol.commands import Approval, Orders
from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import NotWaitingError
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.topic import orders_topic
from pipeline.operate.listings.waiting import check_is, waiting_row
from pipeline.operate.output import Row, plain
from pipeline.planning.facts import is_new
from pipeline.planning.state import from_json
from pipeline.tables.reading import Tables


def approve_plan(tables: Tables, config: Config, group: str, *, plan: str, reason: str, by: str) -> Orders:
    """Approve the plan with this `plan_id`, and return the orders that then apply to the group.

    Raises:
        NotWaitingError: The plan does not wait, or is approved already.
        StoreError: The tables cannot be read.
        BrokerUnavailableError: The order could not be written.
        AccessRefusedError: This user may not write it.
        EncodeError: A text cannot be encoded.
    """
    row = waiting_row(tables, group)
    check_is(row, group, plan)
    with orders_topic(config) as topic:
        written, _ = topic.order(group, lambda held: with_approval(held, row, reason=reason, by=by), by=by)
    return written


def with_approval(held: Orders, row: Row, *, reason: str, by: str) -> Orders:
    """The orders with the approval of the plan of a `waiting_row`.

    Raises:
        NotWaitingError: Another operator has approved the same plan, and the stream has not answered yet.
    """
    now_ms, before = clock.now_ms(), held.approval
    approval = Approval(
        target_hash=row["target_hash"], base_hash=row["base_hash"], reason=reason, by=by, at_ms=now_ms
    )
    answered_ms = from_json(row["state"]).approval_at_ms
    is_unanswered = before is not None and is_new(before.at_ms, answered_ms=answered_ms, now_ms=now_ms)
    if before is not None and is_unanswered and before.hashes == approval.hashes:
        raise NotWaitingError(
            f"{plain(before.by)} has already approved the plan, and the stream publishes it with its next batch; "
            "your order was not written"
        )
    return orders_change.approve(held, approval)
