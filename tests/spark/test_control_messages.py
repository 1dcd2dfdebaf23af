"""Control messages: from decoded rows to where partitions are."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.fold.control_messages import fold_acks, fold_orders, handed_over, held_partitions
from pipeline.fold.step import assigned_partitions
from tests.support.frames import NOW_MS, arrow, at, decoded, member, picked, stored, stored_groups

GROUP: dict[str, Any] = {
    "generation": 4,
    "members": [member("a", assigned={"t": [0, 1]}, client_id="ca"), member("b", assigned={"t": [2]})],
}


def ack_row(kind: str, position: int, **fields: Any) -> dict[str, Any]:
    """A decoded acknowledgement; of generation 4, by a, unless said otherwise."""
    ack = {
        "kind": kind,
        "id": fields.get("id", "a"),
        "generation": 4,
        "epoch": 7,
        "member_id": "a",
        "acked_at": at(0),
    }
    return {"row_kind": "ack", "position": position, "ack": ack | fields}


def kept(
    spark: SparkSession, before: list[dict[str, Any]], *events: dict[str, Any], group: dict[str, Any] = GROUP
) -> DataFrame:
    known = stored(spark, "acks", *before)
    groups = stored_groups(spark, group)
    return fold_acks(known, decoded(spark, *events), groups, at_ms=NOW_MS)


def test_newest_message_of_each_counts_by_position(spark: SparkSession) -> None:
    before = [{"kind": "accepted", "id": "a", "generation": 4, "epoch": 6, "acked_at": at(0), "position": 9}]

    result = kept(spark, before, ack_row("accepted", 11, epoch=7), ack_row("accepted", 10, epoch=8))

    assert picked(result, "kind", "id", "epoch", "position") == [("accepted", "a", 7, 11)]


def test_messages_of_a_generation_that_is_over_are_dropped(spark: SparkSession) -> None:
    rows = (
        ack_row("accepted", 1, id="old", generation=3),
        ack_row("accepted", 2, id="new", generation=5),
        ack_row("accepted", 3, id="months", acked_at=at(-90 * 86_400)),
        ack_row("accepted", 4, id="gone", generation=None),
    )

    assert picked(kept(spark, [], *rows), "id") == [("months",), ("new",)]


def test_messages_of_a_group_that_is_not_there_are_kept_for_a_week(spark: SparkSession) -> None:
    rows = (
        ack_row("accepted", 1, id="today"),
        ack_row("accepted", 2, id="last week", acked_at=at(-8 * 86_400)),
    )

    assert picked(kept(spark, [], *rows, group={"group_id": "another"}), "id") == [("today",)]


def place(kind: str, position: int, hop: int, who: str, *, generation: int = 4) -> dict[str, Any]:
    where = {"id": "t-1", "topic": "t", "partition": 1}
    return ack_row(kind, position, hop=hop, member_id=who, generation=generation, **where)


@pytest.mark.parametrize(
    ("messages", "owner"),
    [
        pytest.param([], "a", id="as assigned"),
        pytest.param([place("release", 1, 1, "a")], None, id="on its way"),
        pytest.param([place("release", 1, 1, "a"), place("taken", 2, 1, "b")], "b", id="taken"),
        pytest.param(
            [place("release", 1, 1, "a"), place("taken", 2, 1, "b"), place("release", 3, 2, "b")],
            None,
            id="on its way back",
        ),
        pytest.param(
            [place("release", 3, 2, "b"), place("taken", 4, 2, "a"), place("taken", 2, 1, "b")],
            "a",
            id="taken back",
        ),
        pytest.param(
            [place("taken", 2, 1, "b", generation=5)], "a", id="of a generation that is not known yet"
        ),
        pytest.param(
            [place("release", 1, 1, "x"), place("taken", 2, 1, "y")], "a", id="of a group that was deleted"
        ),
    ],
)
def test_partition_is_where_its_last_hand_over_put_it(
    spark: SparkSession, messages: list[dict[str, Any]], owner: str | None
) -> None:
    groups = stored_groups(spark, GROUP)
    known = arrow("acks", *(row["ack"] | {"position": row["position"]} for row in messages))
    moved = spark.createDataFrame(handed_over(known, arrow("consumer_groups", GROUP)))

    held = held_partitions(assigned_partitions(groups), moved, groups)

    owners = dict(picked(held.where("partition = 1"), "partition", "owner.member_id"))
    assert owners.get(1) == owner
    assert picked(held.where("partition != 1"), "partition", "owner.member_id") == [(0, "a"), (2, "b")]


def test_orders_that_were_taken_back_leave_no_row(spark: SparkSession) -> None:
    before = [{"paused": True, "position": 4}, {"group_id": "h", "paused": True, "position": 5}]
    events = [{"row_kind": "orders", "group_id": "h", "position": 6, "orders": None}]

    result = fold_orders(stored(spark, "orders", *before), decoded(spark, *events))

    assert picked(result, "group_id", "paused") == [("g", True)]
