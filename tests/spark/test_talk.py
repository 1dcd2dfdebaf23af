"""What followers and operators say, from bytes to where partitions are."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from assignor.protocol import acks, commands
from assignor.protocol.acks import Accepted, AnyAck, Refused, Release
from assignor.protocol.commands import Orders
from pipeline.decode import Filters, decode, summarise
from pipeline.decode_talk import TalkTopics
from pipeline.fold import assigned_partitions
from pipeline.fold_talk import fold_acks, fold_orders, handed_over, held_partitions
from tests.support.frames import NOW_MS, at, decoded, member, picked, stored, stored_groups

TALK = TalkTopics(cluster="local", acks="acks", commands="commands")
ALL = Filters(
    topics_include=(".*",), topics_exclude=(), groups_include=(".*",), groups_exclude=("own",), talk=TALK
)
SOURCE = (
    "kind string, topic string, partition int, offset long, timestamp timestamp, key binary, value binary, "
    "log_start_offset long, log_end_offset long, isolation string, observed_at_ms long, error string"
)
GROUP: dict[str, Any] = {
    "generation": 4,
    "members": [member("a", assigned={"t": [0, 1]}, client_id="ca"), member("b", assigned={"t": [2]})],
}


def said(cls: type[AnyAck], **fields: Any) -> Any:
    return cls(
        **{
            "cluster": "local",
            "group": "g",
            "generation": 4,
            "epoch": 7,
            "member": "a",
            "at_ms": NOW_MS,
            **fields,
        }
    )


def records(spark: SparkSession, topic: str, *pairs: tuple[bytes, bytes | None]) -> DataFrame:
    rows = [("record", topic, 0, position, at(0), *pair, *[None] * 5) for position, pair in enumerate(pairs)]
    return spark.createDataFrame(rows, SOURCE).repartition(1)


def of(ack: AnyAck) -> tuple[bytes, bytes]:
    return acks.encode_key(ack), acks.encode(ack)


def order(**orders: Any) -> tuple[bytes, bytes]:
    given = Orders(**{"cluster": "local", "group": "g", "at_ms": NOW_MS, **orders})
    return commands.encode_key(given), commands.encode(given)


def test_acknowledgements_are_read_and_those_of_others_left_out(spark: SparkSession) -> None:
    release = said(Release, to="b", topic="t", partition=1, hop=1, offset=12)
    other, own = said(Accepted, cluster="elsewhere"), said(Accepted, group="own")

    rows = decode(
        records(spark, "acks", of(release), of(other), of(own), of(said(Refused, why="static"))), ALL
    )

    assert picked(
        rows.where("row_kind = 'ack'"),
        "group_id",
        "ack.kind",
        "ack.id",
        "ack.to_member_id",
        "ack.offset",
        "ack.why",
    ) == [("g", "refused", "a", None, None, "static"), ("g", "release", "t-1", "b", 12, None)]
    assert summarise(rows).acks == 2


def test_orders_are_read_whole(spark: SparkSession) -> None:
    pause = order(
        paused=True, pause_reason="deploy", pinned={"t": (0, 1), "u": ()}, triggered_at_ms=NOW_MS, by="eva"
    )

    rows = decode(records(spark, "commands", pause), ALL).where("row_kind = 'orders'")

    assert picked(
        rows, "group_id", "orders.paused", "orders.pause_reason", "orders.pinned", "orders.ordered_by"
    ) == [("g", True, "deploy", {"t": "0-1", "u": "*"}, "eva")]


@pytest.mark.parametrize("topic", ["acks", "commands"])
@pytest.mark.parametrize(
    "pair",
    [
        (b"{", b"{}"),
        (b'{"cluster":"local","group":"g"}', b"[]"),
        (b"", None),
        pytest.param((b'{"group":"g","cluster":"local"}', None), id="key that compaction takes for another"),
    ],
)
def test_what_cannot_be_read_is_kept_as_bad(
    spark: SparkSession, topic: str, pair: tuple[bytes, bytes | None]
) -> None:
    rows = decode(records(spark, topic, pair), ALL)

    bad = rows.where("row_kind = 'bad'")
    assert picked(bad, "topic", "partition", "offset", "key") == [(topic, 0, 0, bytearray(pair[0]))]
    assert summarise(rows).quarantined == 1


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


def test_newest_word_of_each_counts_by_position(spark: SparkSession) -> None:
    before = [{"kind": "accepted", "id": "a", "generation": 4, "epoch": 6, "acked_at": at(0), "position": 9}]

    result = kept(spark, before, ack_row("accepted", 11, epoch=7), ack_row("accepted", 10, epoch=8))

    assert picked(result, "kind", "id", "epoch", "position") == [("accepted", "a", 7, 11)]


def test_words_of_a_generation_that_is_over_are_dropped(spark: SparkSession) -> None:
    rows = (
        ack_row("accepted", 1, id="old", generation=3),
        ack_row("accepted", 2, id="new", generation=5),
        ack_row("accepted", 3, id="months", acked_at=at(-90 * 86_400)),
        ack_row("accepted", 4, id="gone", generation=None),
    )

    assert picked(kept(spark, [], *rows), "id") == [("months",), ("new",)]


def test_words_of_a_group_that_is_not_there_are_kept_for_a_week(spark: SparkSession) -> None:
    rows = (
        ack_row("accepted", 1, id="today"),
        ack_row("accepted", 2, id="last week", acked_at=at(-8 * 86_400)),
    )

    assert picked(kept(spark, [], *rows, group={"group_id": "another"}), "id") == [("today",)]


def place(kind: str, position: int, hop: int, who: str, *, generation: int = 4) -> dict[str, Any]:
    where = {"id": "t-1", "topic": "t", "partition": 1}
    return ack_row(kind, position, hop=hop, member_id=who, generation=generation, **where)


@pytest.mark.parametrize(
    ("words", "owner"),
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
    spark: SparkSession, words: list[dict[str, Any]], owner: str | None
) -> None:
    groups = stored_groups(spark, GROUP)
    known = stored(spark, "acks", *(row["ack"] | {"position": row["position"]} for row in words))

    held = held_partitions(assigned_partitions(groups), handed_over(known, groups), groups)

    owners = dict(picked(held.where("partition = 1"), "partition", "owner.member_id"))
    assert owners.get(1) == owner
    assert picked(held.where("partition != 1"), "partition", "owner.member_id") == [(0, "a"), (2, "b")]


def test_orders_that_were_taken_back_leave_no_row(spark: SparkSession) -> None:
    before = [{"paused": True, "position": 4}, {"group_id": "h", "paused": True, "position": 5}]
    events = [{"row_kind": "orders", "group_id": "h", "position": 6, "orders": None}]

    result = fold_orders(stored(spark, "orders", *before), decoded(spark, *events))

    assert picked(result, "group_id", "paused") == [("g", True)]
