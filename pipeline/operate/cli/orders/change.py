"""Changes to the standing orders of a group, one order at a time, and the orders in words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import typer

from assignor.errors import DecodeError
from assignor.protocol.commands import ALL, MAX_PARTITIONS, Approval, Orders, format_pin
from assignor.protocol.ranges import parse_ranges
from pipeline import clock
from pipeline.operate.output import Row, plain

Pins = Mapping[str, tuple[int, ...]]
"""Partitions by topic, ascending; an empty tuple is all partitions of the topic."""


def parse_pins(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Partitions that `TOPIC` and `TOPIC:0-3,7` name together; ranges may overlap, in any order.

    Raises:
        typer.BadParameter: A text has no topic, or invalid ranges.
    """
    pins: dict[str, tuple[int, ...]] = {}
    for text in texts:
        topic, colon, ranges = text.partition(":")
        if not topic:
            raise typer.BadParameter(f"{text!r} names no topic; write TOPIC or TOPIC:0-3,7")
        numbers = _parse_ranges(text, ranges) if colon and ranges != ALL else ()
        pins[topic] = _both(pins[topic], numbers) if topic in pins else numbers
    return pins


def pause(orders: Orders, *, reason: str) -> Orders:
    """Pause plans; a second pause replaces the reason."""
    return replace(orders, paused=True, pause_reason=reason)


def resume(orders: Orders, *, now_ms: int) -> Orders:
    """End a pause and a probation; pins stay. Its time is later than that of any earlier resume, as with triggers."""
    before_ms = orders.resumed_at_ms
    resumed_at_ms = now_ms if before_ms is None else max(now_ms, before_ms + 1)
    return replace(orders, paused=False, pause_reason="", resumed_at_ms=resumed_at_ms)


def trigger(orders: Orders, *, now_ms: int) -> Orders:
    """Add a trigger, of another time than the one before it, by this clock: a driver ignores one far from its own."""
    return replace(orders, triggered_at_ms=now_ms + 1 if now_ms == orders.triggered_at_ms else now_ms)


def approve(orders: Orders, approval: Approval) -> Orders:
    """Add an approval, later than any before it, even if the clock of the last one was ahead."""
    before = orders.approval
    at_ms = approval.at_ms if before is None else max(approval.at_ms, before.at_ms + 1)
    return replace(orders, approval=replace(approval, at_ms=at_ms))


def pin(orders: Orders, pins: Pins) -> Orders:
    """Add `pins` to the present ones."""
    held = orders.pinned
    added = {topic: _both(held[topic], pins[topic]) if topic in held else pins[topic] for topic in pins}
    return replace(orders, pinned={**held, **added})


def unpin(orders: Orders, pins: Pins) -> Orders:
    """Remove `pins`, or all if it is empty; partitions that are not pinned are ignored.

    Raises:
        typer.BadParameter: Single partitions of a topic that is pinned as a whole: the rest is unknown.
    """
    left = {topic: _without(topic, held, pins) for topic, held in orders.pinned.items()} if pins else {}
    return replace(orders, pinned={topic: held for topic, held in left.items() if held is not None})


def as_text(orders: Orders) -> str:
    """The orders in words, on one line."""
    reason = f" ({plain(orders.pause_reason)})" if orders.pause_reason else ""
    parts = [f"paused{reason}"] if orders.paused else []
    if orders.pinned:
        parts.append(f"pinned {pins_text(row(orders)['pinned'])}")
    if orders.triggered_at_ms is not None:
        parts.append(f"triggered {plain(clock.at(orders.triggered_at_ms))}")
    if orders.resumed_at_ms is not None:
        parts.append(f"resumed {plain(clock.at(orders.resumed_at_ms))}")
    if orders.approval is not None:
        why = f" ({plain(orders.approval.reason)})" if orders.approval.reason else ""
        parts.append(f"plan {plain(row(orders)['approved_plan'])} approved{why}")
    return ", ".join(parts) or "no orders"


def pins_text(pinned: Mapping[str, str]) -> str:
    """Pinned partitions of a `row`, as the command takes them; `-` for none."""
    written = (topic if text == ALL else f"{topic}:{text}" for topic, text in pinned.items())
    return " ".join(map(plain, written)) or plain(None)


def row(orders: Orders) -> Row:
    """The fields for programs: pins as in the record, times as datetimes in UTC."""
    triggered_at_ms, resumed_at_ms, approval = orders.triggered_at_ms, orders.resumed_at_ms, orders.approval
    return {
        "cluster": orders.cluster,
        "group": orders.group,
        "paused": orders.paused,
        "reason": orders.pause_reason,
        "pinned": {topic: format_pin(orders.pinned[topic]) for topic in sorted(orders.pinned)},
        "triggered_at": None if triggered_at_ms is None else clock.at(triggered_at_ms),
        "resumed_at": None if resumed_at_ms is None else clock.at(resumed_at_ms),
        "approved_plan": None if approval is None else "-".join(approval.hashes),
        "approval_reason": None if approval is None else approval.reason,
        "approved_by": None if approval is None else approval.by,
        "approved_at": None if approval is None else clock.at(approval.at_ms),
        "by": orders.by,
        "at": clock.at(orders.at_ms),
    }


def _parse_ranges(text: str, ranges: str) -> tuple[int, ...]:
    spans = ranges.split(",")
    try:
        numbers = {number for span in spans for number in parse_ranges(span, at_most=MAX_PARTITIONS)}
    except DecodeError as error:
        raise typer.BadParameter(f"{text!r}: {error.reason}; write TOPIC or TOPIC:0-3,7") from None
    if not all(spans):
        raise typer.BadParameter(f"{text!r}: the list has an empty entry; write TOPIC or TOPIC:0-3,7")
    return tuple(sorted(numbers))


def _both(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    # An empty tuple is the whole topic, which includes any part of it.
    return tuple(sorted({*one, *other})) if one and other else ()


def _without(topic: str, held: tuple[int, ...], pins: Pins) -> tuple[int, ...] | None:
    """The partitions of `topic` that stay pinned; None for none."""
    if topic not in pins:
        return held
    gone = pins[topic]
    if gone and not held:
        raise typer.BadParameter(
            f"topic {plain(topic)} is pinned as a whole, so no single partition of it can be unpinned; "
            f"unpin {plain(topic)}, then pin the partitions that must stay"
        )
    taken = set(gone)
    return tuple(number for number in held if number not in taken) or None if gone else None
