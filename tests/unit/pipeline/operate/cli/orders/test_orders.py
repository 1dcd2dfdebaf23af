"""Orders as they are written on the command line, changed, read back and said in words."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import typer

from assignor.protocol import commands
from assignor.protocol.commands import ALL, MAX_PARTITIONS, Orders
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders import commands as orders
from pipeline.operate.cli.orders.change import as_text, parse_pins, row
from pipeline.operate.cli.orders.topic import collect

HELD = Orders(
    cluster="c",
    group="g",
    paused=True,
    pause_reason="why",
    pinned={"t": (0, 1), "u": ()},
    triggered_at_ms=500,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A message as confluent_kafka has it."""

    name: bytes | None
    data: bytes | None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 5

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data


def _records(*records: Orders | tuple[bytes | None, bytes | None]) -> Iterator[Any]:
    for record in records:
        key, value = (
            (commands.encode_key(record), commands.encode(record)) if isinstance(record, Orders) else record
        )
        yield _Record(name=key, data=value)


@pytest.mark.parametrize(
    ("texts", "pins"),
    [
        (["t"], {"t": ()}),
        (["t:*"], {"t": ()}),
        (["t:7"], {"t": (7,)}),
        (["t:7,0-3,2-4"], {"t": (0, 1, 2, 3, 4, 7)}),
        (["t:1", "u", "t:0"], {"t": (0, 1), "u": ()}),
        (["t:1", "t"], {"t": ()}),
        (["t", "t:1"], {"t": ()}),
        ([], {}),
    ],
    ids=str,
)
def test_places_are_read_as_people_write_them(texts: list[str], pins: dict[str, tuple[int, ...]]) -> None:
    assert parse_pins(texts) == pins


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":0",
        "t:",
        "t:0,",
        "t:,0",
        "t:0,,1",
        "t:3-0",
        "t:-1",
        "t: 1",
        "t:x",
        "t:0-",
        "t:2147483648",
        "t:0-9999999",
        "t:0:1",
    ],
)
def test_wrong_place_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write TOPIC or TOPIC:0-3,7"):
        parse_pins([text])


@pytest.mark.parametrize(
    ("pins", "pinned"),
    [
        ({"t": (1, 7)}, {"t": (0, 1, 7), "u": ()}),
        ({"t": ()}, {"t": (), "u": ()}),
        ({"u": (3,)}, {"t": (0, 1), "u": ()}),
        ({"v": (3,)}, {"t": (0, 1), "u": (), "v": (3,)}),
    ],
    ids=["more of a topic", "the rest of a topic", "part of a whole topic", "another topic"],
)
def test_pin_adds_to_what_is_pinned(pins: dict[str, tuple[int, ...]], pinned: Any) -> None:
    assert orders_change.pin(HELD, pins) == replace(HELD, pinned=pinned)


@pytest.mark.parametrize(
    ("pins", "pinned"),
    [
        ({}, {}),
        ({"t": (1, 7)}, {"t": (0,), "u": ()}),
        ({"t": (0, 1)}, {"u": ()}),
        ({"t": (), "u": ()}, {}),
        ({"v": ()}, {"t": (0, 1), "u": ()}),
    ],
    ids=["all", "part of a topic", "each part of a topic", "whole topics", "what is not pinned"],
)
def test_unpin_takes_only_what_is_named(pins: dict[str, tuple[int, ...]], pinned: Any) -> None:
    assert orders_change.unpin(HELD, pins) == replace(HELD, pinned=pinned)


def test_unpin_of_many_partitions_looks_at_each_once() -> None:
    held = replace(HELD, pinned={"t": tuple(range(MAX_PARTITIONS))})

    began = time.process_time()
    left = orders_change.unpin(held, {"t": tuple(range(1, MAX_PARTITIONS))})

    assert left.pinned == {"t": (0,)}
    # Once per partition they took minutes.
    assert time.process_time() - began < 5


def test_part_of_a_topic_pinned_whole_is_not_unpinned_by_guessing() -> None:
    with pytest.raises(typer.BadParameter, match="unpin u, then pin the partitions that must stay"):
        orders_change.unpin(HELD, {"u": (1,)})


def test_pause_and_resume_leave_pins_and_trigger() -> None:
    resumed = orders_change.resume(HELD, now_ms=700)

    assert resumed == replace(HELD, paused=False, pause_reason="", resumed_at_ms=700)
    assert orders_change.pause(resumed, reason="why") == replace(HELD, resumed_at_ms=700)


@pytest.mark.parametrize(("before_ms", "after_ms"), [(500, 700), (700, 701), (9000, 9001)])
def test_resume_is_newer_than_any_before_it_also_where_nothing_is_paused(
    before_ms: int, after_ms: int
) -> None:
    held = replace(HELD, paused=False, pause_reason="", resumed_at_ms=before_ms)

    assert orders_change.resume(held, now_ms=700) == replace(held, resumed_at_ms=after_ms)
    assert as_text(held).endswith(f", resumed 1970-01-01T00:00:{before_ms // 1000:02}Z")


@pytest.mark.parametrize(
    ("before_ms", "after_ms"), [(None, 700), (500, 700), (700, 701), (9000, 700)], ids=str
)
def test_trigger_has_the_time_of_this_clock_and_another_than_the_one_before_it(
    before_ms: int | None, after_ms: int
) -> None:
    held = replace(HELD, triggered_at_ms=before_ms)

    assert orders_change.trigger(held, now_ms=700) == replace(HELD, triggered_at_ms=after_ms)


def test_what_holds_is_said_on_one_line() -> None:
    assert as_text(HELD) == "paused (why), pinned t:0-1 u, triggered 1970-01-01T00:00:00Z"
    assert as_text(Orders(cluster="c", group="g", pause_reason="of old")) == "no orders"


def test_reason_cannot_steer_the_terminal() -> None:
    assert as_text(replace(HELD, pause_reason="a\n\x1b[31m", pinned={}, triggered_at_ms=None)).isprintable()


def test_programs_get_pins_as_the_record_has_them() -> None:
    assert row(HELD)["pinned"] == {"t": "0-1", "u": ALL}


def _found(records: Iterable[Any]) -> tuple[dict[Any, Orders], int]:
    found = collect(iter(records))
    return dict(found.orders), len(found.skipped)


def test_newest_orders_of_each_group_count() -> None:
    newer, other = replace(HELD, paused=False), replace(HELD, group="h")
    elsewhere = replace(HELD, cluster="d")

    found = _found(_records(HELD, other, newer, elsewhere))

    assert found == ({("c", "g"): newer, ("c", "h"): other, ("d", "g"): elsewhere}, 0)


@pytest.mark.parametrize(
    "record",
    [
        (None, commands.encode(HELD)),
        (b"g", commands.encode(HELD)),
        (commands.encode_key(HELD), b""),
        (commands.encode_key(HELD), b"\xff"),
        (commands.encode_key(HELD), b"[]"),
    ],
    ids=["no key", "foreign key", "empty value", "not text", "not an object"],
)
def test_damaged_record_leaves_what_stood_before_it(record: tuple[bytes | None, bytes]) -> None:
    assert _found(_records(HELD, record)) == ({("c", "g"): HELD}, 1)


def test_deleted_orders_are_gone() -> None:
    assert _found(_records(HELD, (commands.encode_key(HELD), None))) == ({}, 0)


def test_deletion_of_what_was_never_there_is_nothing() -> None:
    assert _found(_records((commands.encode_key(HELD), None))) == ({}, 0)


def test_order_of_a_container_without_user_names_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)

    assert orders.who().partition("@")[0].isdigit()
