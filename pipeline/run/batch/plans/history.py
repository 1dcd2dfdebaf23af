"""Reads back the decisions of a batch, and records in `recommendations` those that differ from earlier ones."""

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.planning.rows import kept
from pipeline.run.batch.intake import Settled
from pipeline.run.rows import without
from pipeline.tables.store import Store


def record_decisions(batch: Settled, *, has_decided: bool) -> pa.Table | None:
    """Read back the decisions of the batch, and add those that differ from earlier ones to the history."""
    if not has_decided:
        return None
    store, at_ms = batch.services.store, batch.stamp.at_ms
    decisions = _decisions_at(store, at_ms)
    due = kept.history(decisions)
    if batch.past is not None:
        due = _unrecorded(store, due, at_ms)
    if due.num_rows:
        batch.write("recommendations", due)
    return decisions


def record_left_decisions(store: Store) -> None:
    """Append what a driver that died between two writes has left, whether or not its batch runs again."""
    newest, recorded = store.stamp("plan_state"), store.stamp("recommendations")
    if newest is None or (recorded is not None and recorded.at_ms >= newest.at_ms):
        return
    due = _unrecorded(store, kept.history(_decisions_at(store, newest.at_ms)), newest.at_ms)
    if due.num_rows:
        store.append_left("recommendations", due, newest)


def _decisions_at(store: Store, at_ms: int) -> pa.Table:
    """Rows of `schemas.PLAN_STATE` of the batch that had this clock."""
    return store.arrow("plan_state", where=pc.field("updated_at") == moment(at_ms))


def _unrecorded(store: Store, due: pa.Table, at_ms: int) -> pa.Table:
    """The rows that are not in the history, whatever the stamps say: those go with the log's retention."""
    there = store.arrow("recommendations", ["group_id"], where=pc.field("created_at") == moment(at_ms))
    return without(due, "group_id", there["group_id"])
