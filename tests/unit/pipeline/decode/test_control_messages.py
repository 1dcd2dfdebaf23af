"""What followers and operators say, from bytes to rows."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from assignor.protocol import acks, commands
from assignor.protocol.acks import Accepted, AnyAck, Follows, Refused, Release
from assignor.protocol.commands import Approval, Orders
from tests.support.brokers.raw_records import Decoded, Pair, decoded, raw
from tests.support.job.batches import CONTROL, FILTERS
from tests.support.job.frames import NOW_MS, at

ACKS, COMMANDS = CONTROL.acks_topic, CONTROL.commands_topic


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


def of(ack: AnyAck) -> Pair:
    return acks.encode_key(ack), acks.encode(ack)


def order(**orders: Any) -> Pair:
    given = Orders(**{"cluster": "local", "group": "g", "at_ms": NOW_MS, **orders})
    return commands.encode_key(given), commands.encode(given)


TENANTS = {"shop-": "shop.acks", "shop-eu-": "eu.acks", "bank-": "bank.acks"}


def read(topic: str, *pairs: Pair, tenants: Mapping[str, str] = MappingProxyType({})) -> Decoded:
    control_topics = replace(FILTERS.control_topics, acks_by_prefix=tenants)
    filters = replace(FILTERS, groups_exclude=("own",), control_topics=control_topics)
    return decoded(raw(*pairs, topic=topic, partition=0), filters)


def test_acknowledgement_that_no_follower_writes_so_large_is_bad() -> None:
    found = read(ACKS, of(said(Refused, why="x" * 16_384)), of(said(Refused, member="b", why="x" * 400)))

    assert found.picked("ack", "ack.id") == [("b",)]
    ((reason,),) = found.picked("bad", "reason")
    assert reason.endswith("bytes: at most 16,384 count")


def test_acknowledgement_with_names_that_nobody_has_is_bad_and_so_is_what_takes_it_back() -> None:
    long = said(Follows, member="x" * 4_000)

    found = read(ACKS, of(long), (acks.encode_key(said(Follows, member="x" * 4_096)), None))

    assert found.counts == {"bad": 2}
    assert all("bytes besides its reason: at most 4,096 count" in row["reason"] for row in found.of("bad"))


def test_start_of_a_long_reason_is_kept() -> None:
    found = read(ACKS, of(said(Refused, why="é" * 5_000)))

    assert found.picked("ack", "ack.why") == [("é" * 500,)]


def test_acknowledgements_are_read_and_those_of_others_left_out() -> None:
    release = said(Release, to="b", topic="t", partition=1, hop=1, offset=12)
    other, own = said(Follows, cluster="elsewhere"), said(Follows, group="own")

    found = read(ACKS, of(release), of(other), of(own), of(said(Refused, why="static")))

    assert found.picked(
        "ack", "group_id", "ack.kind", "ack.id", "ack.to_member_id", "ack.offset", "ack.why"
    ) == [
        ("g", "refused", "a", None, None, "static"),
        ("g", "release", "t-1", "b", 12, None),
    ]
    assert found.counts == {"ack": 2}


@pytest.mark.parametrize(
    ("group", "topic"),
    [
        ("shop-a", "shop.acks"),
        ("shop-eu-a", "eu.acks"),
        ("bank-a", "bank.acks"),
        ("other", ACKS),
        ("shop", ACKS),
    ],
)
def test_acknowledgement_counts_on_the_topic_of_its_group_and_on_no_other(group: str, topic: str) -> None:
    taken_back = acks.encode_key(said(Refused, group=group, why="static")), None

    for written in (ACKS, *TENANTS.values()):
        found = read(written, of(said(Follows, group=group)), taken_back, tenants=TENANTS)

        if written == topic:
            assert found.counts == {"ack": 2}
        else:
            assert found.counts == {"bad": 2}
            reason = f"acknowledgement of group {group!r} on topic {written}: only those on {topic} count"
            assert {row["reason"] for row in found.of("bad")} == {f"{reason} (control.acks_topics)"}
            assert found.picked("bad", "topic", "offset", "kind") == [
                (written, 0, "ack"),
                (written, 1, "ack"),
            ]


def test_acknowledgement_about_another_cluster_is_left_out_on_any_tenants_topic() -> None:
    found = read("bank.acks", of(said(Follows, group="shop-a", cluster="elsewhere")), tenants=TENANTS)

    assert (found.counts, found.rows) == ({}, [])


def test_order_on_a_tenants_topic_is_no_order() -> None:
    found = read("shop.acks", order(group="shop-a", paused=True), tenants=TENANTS)

    assert found.counts == {"bad": 1}


@pytest.mark.parametrize("kind", [Follows, Accepted])
def test_member_of_any_version_that_follows_a_plan_has_accepted_it(kind: type[AnyAck]) -> None:
    ack = said(kind)
    taken_back = acks.encode_key(said(kind, member="b")), None

    found = read(ACKS, of(ack), taken_back)

    assert found.picked("ack", "ack.kind", "ack.id", "ack.epoch") == [
        ("accepted", "a", 7),
        ("accepted", "b", None),
    ]


def test_orders_are_read_whole() -> None:
    pause = order(
        paused=True, pause_reason="deploy", pinned={"t": (0, 1), "u": ()}, triggered_at_ms=NOW_MS, by="eva"
    )

    (row,) = read(COMMANDS, pause).of("orders")

    assert row["group_id"] == "g"
    assert {name: row["orders"][name] for name in ("paused", "pause_reason", "pinned", "ordered_by")} == {
        "paused": True,
        "pause_reason": "deploy",
        "pinned": [("t", "0-1"), ("u", "*")],
        "ordered_by": "eva",
    }


def test_resume_is_read_with_its_time_and_absent_it_is_null() -> None:
    resumed, paused = read(COMMANDS, order(resumed_at_ms=NOW_MS), order(group="h", paused=True)).of("orders")

    assert (resumed["orders"]["resumed_at"], paused["orders"]["resumed_at"]) == (at(0), None)


def test_approval_is_read_with_who_gave_it_and_absent_it_is_null() -> None:
    given = Approval(target_hash="3f2a", base_hash="91bc", reason="why", by="ann@desk", at_ms=NOW_MS)

    approved, paused = read(COMMANDS, order(approval=given), order(group="h", paused=True)).of("orders")

    names = ("approved_target_hash", "approved_base_hash", "approval_reason", "approved_by", "approved_at")
    assert tuple(approved["orders"][name] for name in names) == ("3f2a", "91bc", "why", "ann@desk", at(0))
    assert {paused["orders"][name] for name in names} == {None}


@pytest.mark.parametrize("topic", [ACKS, COMMANDS])
@pytest.mark.parametrize(
    "pair",
    [
        (b"{", b"{}"),
        (b'{"cluster":"local","group":"g"}', b"[]"),
        (b"", None),
        pytest.param((b'{"group":"g","cluster":"local"}', None), id="key that compaction takes for another"),
    ],
)
def test_what_cannot_be_read_is_kept_as_bad(topic: str, pair: Pair) -> None:
    found = read(topic, pair)

    assert found.picked("bad", "topic", "partition", "offset", "key") == [(topic, 0, 0, pair[0])]
    assert found.counts == {"bad": 1}
