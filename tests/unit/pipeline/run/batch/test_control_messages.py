"""The step of control messages: when the tables of acknowledgements and orders are written, and what they hold then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch.control_messages import store_control_messages
from tests.support.job.batches import CONTROL, FILTERS, idle_driver
from tests.support.job.frames import at
from tests.support.job.step_batches import StepBatches

ACKS, COMMANDS = (CONTROL.acks_topic, 0), (CONTROL.commands_topic, 0)


@pytest.fixture
def batches(tmp_path: Path) -> StepBatches:
    return StepBatches(str(tmp_path), store_control_messages)


def ack(member: str, position: int, group_id: str = "g") -> dict[str, Any]:
    fields = {"kind": "accepted", "id": member, "member_id": member, "generation": 1, "epoch": 1}
    given = {"group_id": group_id, "position": position, "ack": {**fields, "acked_at": at(0)}}
    return {"row_kind": "ack", **given}


def order(group_id: str, position: int) -> dict[str, Any]:
    orders = {"paused": True, "ordered_at": at(0)}
    return {"row_kind": "orders", "group_id": group_id, "position": position, "orders": orders}


def stored(batches: StepBatches) -> tuple[list[str], list[str]]:
    """Members with an acknowledgement, and groups with orders."""
    return batches.values("acks", "id"), batches.values("orders", "group_id")


def test_new_messages_are_folded_into_what_is_stored(batches: StepBatches) -> None:
    assert batches.run(ack("a", 1)) == {"acks"}
    assert batches.run() == set()
    assert batches.run(ack("b", 2), ack("a", 3), order("g", 1)) == {"acks", "orders"}

    assert stored(batches) == (["a", "b"], ["g"])
    assert batches.values("acks", "position") == [2, 3]


def test_topic_read_again_replaces_what_is_stored_even_if_it_is_empty(batches: StepBatches) -> None:
    assert batches.run(reread=[ACKS, COMMANDS]) == set()
    batches.run(ack("a", 5), order("g", 5))

    assert batches.run(order("h", 1), reread=[ACKS, COMMANDS]) == {"acks", "orders"}

    assert stored(batches) == ([], ["h"])


def test_topic_read_again_leaves_the_messages_of_the_other_one(batches: StepBatches) -> None:
    batches.run(ack("a", 5), order("g", 5))

    assert batches.run(ack("b", 1), order("h", 6), reread=[ACKS]) == {"acks", "orders"}

    assert stored(batches) == (["b"], ["g", "h"])


def test_topic_of_a_tenant_that_is_read_again_leaves_the_acknowledgements_of_the_others(
    batches: StepBatches,
) -> None:
    tenants = {"shop-": "shop.acks", "bank-": "bank.acks"}
    control_topics = replace(FILTERS.control_topics, acks_by_prefix=tenants)
    filters = replace(FILTERS, control_topics=control_topics)
    batches.driver = idle_driver(store=batches.store, filters=filters)
    batches.run(ack("a", 5, "shop-1"), ack("b", 5, "bank-1"), ack("c", 5), ack("d", 5, "shop-2"))

    batches.run(ack("a", 1, "shop-1"), reread=[("shop.acks", 0)])
    assert stored(batches)[0] == ["a", "b", "c"]
    # Of another topic than before, where it has a lower offset.
    assert batches.values("acks", "position") == [1, 5, 5]

    batches.run(reread=[ACKS])
    assert stored(batches)[0] == ["a", "b"]


def test_table_that_holds_the_batch_is_not_written_again(batches: StepBatches) -> None:
    batches.run(ack("a", 1), order("g", 1))

    assert batches.run(order("h", 2), reread=[ACKS], written={"acks"}) == {"orders"}

    assert stored(batches) == (["a"], ["g", "h"])
