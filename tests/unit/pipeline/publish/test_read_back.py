"""What is to be sent and remembered, from rows of the tables."""

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.publish.read_back import decisions_of, newest_plans
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import PLAN_STATE, RECOMMENDATIONS
from tests.support.job.frames import NOW_MS, at

_ROW: dict[str, Any] = {
    "decision": "publish",
    "record": "{}",
    "target_hash": "target",
    "base_hash": "base",
    "valid_until": at(60),
    "created_at": at(-90),
}


def table(*rows: dict[str, Any]) -> pa.Table:
    fields = [*arrow_schema(PLAN_STATE), arrow_schema(RECOMMENDATIONS).field("created_at")]
    schema = pa.schema([field.with_nullable(True) for field in fields])
    return pa.Table.from_pylist([_ROW | row for row in rows], schema=schema)


def read(rows: pa.Table, columns: list[str], where: pc.Expression) -> pa.Table:
    return rows.filter(where).select(columns)


def test_plans_of_a_batch_are_those_decided_to_be_published_by_group() -> None:
    decisions = decisions_of(
        table(
            {"group_id": "h", "epoch": 3, "state": "later"},
            {"group_id": "g", "epoch": 2},
            {"group_id": "i", "decision": "unchanged"},
        )
    )

    assert [(group, one.plan.epoch, one.value) for group, one in decisions.plans.items()] == [
        ("g", 2, "{}"),
        ("h", 3, "{}"),
    ]
    assert decisions.plans["g"].plan.valid_until_ms == NOW_MS + 60_000
    assert decisions.states == {"h": "later"}


def test_newest_plan_of_each_group_is_known_and_only_one_that_holds_is_to_be_sent() -> None:
    rows = table(
        {"group_id": "holds", "epoch": 4, "record": "four"},
        {"group_id": "holds", "epoch": 3, "record": "three"},
        {"group_id": "expired", "epoch": 7, "valid_until": at(0)},
        {"group_id": "expired", "epoch": 6},
        {"group_id": "withdrawn", "epoch": 2, "record": None, "target_hash": "", "valid_until": at(-9)},
        {"group_id": "never", "decision": "dry_run"},
    )

    plans, to_send = newest_plans(partial(read, rows), now_ms=NOW_MS)

    assert {group: plan.epoch for group, plan in plans.items()} == {"holds": 4, "expired": 7, "withdrawn": 2}
    assert {group: (one.plan.epoch, one.value) for group, one in to_send.items()} == {
        "holds": (4, "four"),
        "withdrawn": (2, None),
    }
