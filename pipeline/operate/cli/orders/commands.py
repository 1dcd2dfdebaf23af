"""What an operator tells the stream about a group: `pause`, `resume`, `trigger`, `pin`, `unpin`, and `orders`.

There is no `--bootstrap`: an order holds for a group of a cluster by its name, so it must be given under the name
that the stream's configuration has, or nobody reads it.
"""

import getpass
import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import typer

from assignor.errors import EncodeError
from assignor.protocol.commands import Orders
from pipeline import clock
from pipeline.config.load import load
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.change import Pins, as_text, parse_pins, pins_text, row
from pipeline.operate.cli.orders.topic import Found, OrdersTopic, orders_topic
from pipeline.operate.cli.place import StreamConfigOption, find_config
from pipeline.operate.output import Column, FormatOption, Row, json_value, note, plain, progress, show

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]
OutputOption = Annotated[
    Literal["text", "json"],
    typer.Option("--output", "-o", help="A line for people, or a JSON object."),
]

_SCHEMA = pa.schema(
    [
        ("cluster", pa.string()),
        ("group", pa.string()),
        ("paused", pa.bool_()),
        ("reason", pa.string()),
        ("pinned", pa.map_(pa.string(), pa.string())),
        ("triggered_at", pa.timestamp("ms", "UTC")),
        ("by", pa.string()),
        ("at", pa.timestamp("ms", "UTC")),
    ]
)


def _paused(values: Row) -> str:
    return "yes" if values["paused"] else "no"


def _pinned(values: Row) -> str:
    return pins_text(values["pinned"])


_COLUMNS = (
    Column(header="CLUSTER", name="cluster"),
    Column(header="GROUP", name="group"),
    Column(header="PAUSED", name="paused", cell=_paused),
    Column(header="REASON", name="reason"),
    Column(header="PINNED", name="pinned", cell=_pinned),
    Column(header="TRIGGERED-AT", name="triggered_at"),
    Column(header="BY", name="by"),
    Column(header="AT", name="at"),
)


def orders(*, output: FormatOption = "table", config: StreamConfigOption = None) -> None:
    """Standing orders of all groups: what is paused or pinned, when it was triggered, and by whom.

    Example: lagwise orders -o json

    They are read from the commands topic of the brokers; no tables are needed.
    Exit status: 0 rows were printed, 1 there are none or no broker answers, 2 wrong usage.
    """
    with progress("reading the orders"), orders_topic(load(find_config(config))) as topic:
        found = topic.read()
    _tell_skipped(found, topic)
    rows = [row(found.orders[place]) for place in sorted(found.orders)]
    show(pa.Table.from_pylist(rows, schema=_SCHEMA), _COLUMNS, output=output)
    if not rows:
        note(f"nobody has given an order on topic {topic.topic}")
        raise typer.Exit(1)


def pause(
    group: GroupArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="For whoever comes next.")] = "",
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Publish no plan for a group until `lagwise resume`.

    Example: lagwise pause billing --reason 'INC-4711, ann looks at it'

    The stream goes on measuring the group. A plan that is published already is withdrawn; members stay where they
    are by then. Pins stay. Safe to repeat: the newest reason counts.
    Exit status: 0 the order is written, 1 it is not, 2 wrong usage.
    """
    _give(
        group,
        lambda held: orders_change.pause(held, reason=reason),
        then="with that a plan that is out is withdrawn, and no other is published for the group",
        config=config,
        output=output,
    )


def resume(group: GroupArgument, *, output: OutputOption = "text", config: StreamConfigOption = None) -> None:
    """Publish plans for a paused group again.

    Example: lagwise resume billing

    Pins stay. Safe to repeat.
    Exit status: 0 the order is written, 1 it is not, 2 wrong usage.
    """
    _give(
        group,
        orders_change.resume,
        then="from then on plans are published for the group again",
        config=config,
        output=output,
    )


def trigger(
    group: GroupArgument, *, output: OutputOption = "text", config: StreamConfigOption = None
) -> None:
    """Let the next plan of a group pass the guards that keep plans rare.

    Example: lagwise trigger billing

    A plan that is better is then published at once, without waiting for confirmations or a cooldown. If there
    is none within ten minutes, the trigger is forgotten. A paused group stays paused, pinned partitions stay
    where they are, and a dry run stays one.
    Exit status: 0 the order is written, 1 it is not, 2 wrong usage.
    """
    written = _give(
        group,
        lambda held: orders_change.trigger(held, now_ms=clock.now_ms()),
        then="with that the group is evaluated at once, and no guard holds its plan back",
        config=config,
        output=output,
    )
    if written.paused:
        note(f"{plain(group)} is paused: nothing is published before `lagwise resume`")


def pin(
    group: GroupArgument,
    partitions: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC[:0-3,7]", help="Partitions, or a whole topic.", show_default=False),
    ],
    *,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Keep partitions of a group where they are: no plan moves them.

    Example: lagwise pin billing invoices:0-3,7 payments

    A topic without numbers is pinned with all partitions that it has or gets. What is pinned already stays so.
    Exit status: 0 the order is written, 1 it is not, 2 wrong usage.
    """
    pins = parse_pins(partitions)
    _give(
        group,
        lambda held: orders_change.pin(held, pins),
        then="plans made from then on leave pinned partitions where they are",
        config=config,
        output=output,
        pins=pins,
    )


def unpin(
    group: GroupArgument,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC[:0-3,7]", help="None: all that is pinned.", show_default=False),
    ] = None,
    *,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Let plans move pinned partitions of a group again; without TOPIC all of them.

    Example: lagwise unpin billing invoices:7 payments

    Safe to repeat: what is not pinned is no error.
    Exit status: 0 the order is written, 1 it is not, 2 wrong usage.
    """
    pins = parse_pins(partitions or ())
    _give(
        group,
        lambda held: orders_change.unpin(held, pins),
        then="plans made from then on may move what is not pinned",
        config=config,
        output=output,
    )


def _give(
    group: str,
    change: Callable[[Orders], Orders],
    *,
    then: str,
    config: Path | None,
    output: Literal["text", "json"],
    pins: Pins | None = None,
) -> Orders:
    """Write the changed orders, say what holds and from when on, and return it."""
    settings = load(find_config(config))
    with progress("asking the brokers"), orders_topic(settings) as topic:
        try:
            written, found = topic.change(
                group, lambda held: replace(change(held), by=_who(), at_ms=clock.now_ms())
            )
        except EncodeError as error:
            raise typer.BadParameter(str(error)) from None
        doubts = _doubts(topic, group, pins or {})
    _tell_skipped(found, topic)
    for doubt in doubts:
        note(doubt)
    if output == "json":
        typer.echo(json.dumps(row(written), default=json_value))
    else:
        typer.echo(
            f"{plain(group)} on cluster {plain(written.cluster)}: {as_text(written)}. "
            f"The stream reads this within {settings.trigger.interval_s} s; {then}."
        )
    return written


def _doubts(topic: OrdersTopic, group: str, pins: Pins) -> list[str]:
    """What may be a typing error; the order holds all the same, for groups and topics may come later."""
    doubts = []
    if not topic.knows_group(group):
        doubts.append(f"the cluster knows no group {plain(group)} now; the order waits for it")
    for name in sorted(pins):
        count = topic.partitions_of(name)
        if count is None:
            doubts.append(f"the cluster shows no topic {plain(name)} now; the pin waits for it")
        elif pins[name] and pins[name][-1] >= count:
            doubts.append(f"topic {plain(name)} has partitions 0 to {count - 1} now; the pin waits for more")
    return doubts


def _tell_skipped(found: Found, topic: OrdersTopic) -> None:
    if found.skipped:
        note(
            f"skipped on topic {topic.topic}: {len(found.skipped)} that are no orders, the last {found.skipped[-1]}"
        )


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
