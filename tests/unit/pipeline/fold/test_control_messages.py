"""Control messages: from decoded rows to where partitions are."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.fold import control_messages
from pipeline.fold.control_messages import fold_acks, fold_orders, handed_over
from pipeline.fold.owners import held_partitions
from tests.support.job.frames import NOW_MS, arrow, at, decoded_arrow, member, shown

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


def kept(before: list[dict[str, Any]], *events: dict[str, Any], group: dict[str, Any] = GROUP) -> pa.Table:
    known = arrow("acks", *before)
    groups = arrow("consumer_groups", group)
    return fold_acks(known, decoded_arrow(*events), groups, at_ms=NOW_MS)


def test_newest_message_of_each_counts_by_position() -> None:
    before = [{"kind": "accepted", "id": "a", "generation": 4, "epoch": 6, "acked_at": at(0), "position": 9}]

    result = kept(before, ack_row("accepted", 11, epoch=7), ack_row("accepted", 10, epoch=8))

    assert shown(result, "kind", "id", "epoch", "position") == [("accepted", "a", 7, 11)]


def test_messages_of_a_generation_that_is_over_are_dropped() -> None:
    rows = (
        ack_row("accepted", 1, id="old", generation=3),
        ack_row("accepted", 2, id="new", generation=5),
        ack_row("accepted", 3, id="months", acked_at=at(-90 * 86_400)),
        ack_row("accepted", 4, id="gone", generation=None),
    )

    assert shown(kept([], *rows), "id") == [("months",), ("new",)]


def test_table_holds_the_newest_messages_of_a_group_however_many_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_messages, "_MOST_OF_A_GROUP", 2)
    rows = [ack_row("accepted", position, id=f"m{position}") for position in (3, 1, 2)]
    other = [ack_row("accepted", 9, id="other") | {"group_id": "another"}]

    assert shown(kept([], *rows, *other), "id") == [("m2",), ("m3",), ("other",)]


def test_messages_of_a_group_that_is_not_there_are_kept_for_a_week() -> None:
    rows = (
        ack_row("accepted", 1, id="today"),
        ack_row("accepted", 2, id="last week", acked_at=at(-8 * 86_400)),
        ack_row("accepted", 3, id="by its writer of next week", acked_at=at(8 * 86_400)),
    )

    assert shown(kept([], *rows, group={"group_id": "another"}), "id") == [("today",)]


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
    messages: list[dict[str, Any]], owner: str | None
) -> None:
    groups = arrow("consumer_groups", GROUP)
    known = arrow("acks", *(row["ack"] | {"position": row["position"]} for row in messages))

    held = held_partitions(groups, handed_over(known, groups), pa.array(["t"]))

    owners = dict(shown(held.filter(pc.equal(held["partition"], 1)), "partition", "member_id"))
    assert owners.get(1) == owner
    assert shown(held.filter(pc.not_equal(held["partition"], 1)), "partition", "member_id") == [
        (0, "a"),
        (2, "b"),
    ]


def test_hand_overs_end_when_the_group_is_migrated_to_kip_848() -> None:
    release = ack_row("release", 1, id="t-1", topic="t", partition=1, hop=1, member_id="a", generation=4)
    known = arrow("acks", release["ack"] | {"position": 1})
    migrated = arrow("consumer_groups", GROUP | {"group_type": "consumer"})

    assert handed_over(known, arrow("consumer_groups", GROUP)).num_rows == 1
    assert handed_over(known, migrated).num_rows == 0


def test_orders_that_were_taken_back_leave_no_row() -> None:
    before = [{"paused": True, "position": 4}, {"group_id": "h", "paused": True, "position": 5}]
    events = [{"row_kind": "orders", "group_id": "h", "position": 6, "orders": None}]

    result = fold_orders(arrow("orders", *before), decoded_arrow(*events))

    assert shown(result, "group_id", "paused") == [("g", True)]
