"""Orders of an operator about a group: `pause`, `resume`, `trigger`, `pin`, `unpin`, and `orders`; all but `approve`.

There is no `--bootstrap`: an order is for a group under the cluster's name, which must be that of the stream's
configuration, or no stream reads the order.
"""

import getpass
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from assignor.errors import EncodeError
from assignor.protocol.commands import Orders
from pipeline import clock, shell
from pipeline.config.load import load
from pipeline.operate.cli.locations import StreamConfigOption, find_config
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.change import Pins, as_text, parse_pins, pins_text, row
from pipeline.operate.cli.orders.doubts import doubts
from pipeline.operate.cli.orders.topic import Found, OrdersTopic, orders_topic
from pipeline.operate.output import Column, FormatOption, end_without, json_value, note, plain, progress, show

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Consumer group.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for the next operator to read.")
]
OutputOption = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="A line for people, or a JSON object.")
]


_COLUMNS = (
    Column(header="CLUSTER", name="cluster"),
    Column(header="GROUP", name="group"),
    Column(header="PAUSED", name="paused", cell=lambda values: "yes" if values["paused"] else "no"),
    Column(header="REASON", name="reason"),
    Column(header="PINNED", name="pinned", cell=lambda values: pins_text(values["pinned"])),
    Column(header="TRIGGERED-AT", name="triggered_at"),
    Column(header="RESUMED-AT", name="resumed_at", is_wide=True),
    Column(header="APPROVED-PLAN", name="approved_plan"),
    Column(header="APPROVED-BY", name="approved_by"),
    Column(header="APPROVED-AT", name="approved_at", is_wide=True),
    Column(header="APPROVAL-REASON", name="approval_reason", is_wide=True),
    Column(header="BY", name="by"),
    Column(header="AT", name="at"),
)


def orders(*, output: FormatOption = "table", config: StreamConfigOption = None) -> None:
    """Standing orders of all groups, with time and author.

    Example: lagwise orders -o json

    Orders are pauses, pins, triggers and approvals. The command reads the commands topic and needs no tables.

    Exit status: 0 rows were printed, 1 there are none or no broker answers, 2 wrong usage.
    """
    with progress("reading the orders"), orders_topic(load(find_config(config))) as topic:
        found = topic.read()
    _tell_skipped(found, topic)
    rows = [row(found.orders[place]) for place in sorted(found.orders)]
    show(rows, _COLUMNS, output=output)
    end_without(rows, f"there are no orders on topic {topic.topic}")


def pause(
    group: GroupArgument,
    *,
    reason: ReasonOption = "",
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Publish no plan for a group until `lagwise resume`.

    Example: lagwise pause billing --reason 'INC-4711, ann looks at it'

    The stream goes on measuring the group. It withdraws a plan that is published already; members keep the partitions
    that they have by then. Pins stay. Safe to repeat: the newest reason counts.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    give(
        group,
        lambda held: orders_change.pause(held, reason=reason),
        then="it then withdraws the group's published plan, if there is one, and publishes no other",
        config=config,
        output=output,
    )


def resume(group: GroupArgument, *, output: OutputOption = "text", config: StreamConfigOption = None) -> None:
    """Publish plans again for a group that was paused.

    Example: lagwise resume billing

    This also ends a probation after a plan that hurt; `lagwise doctor GROUP` shows whether the group is on probation,
    and why. Pins stay. Safe to repeat.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    was_paused = False

    def change(held: Orders) -> Orders:
        nonlocal was_paused
        was_paused = held.paused
        return orders_change.resume(held, now_ms=clock.now_ms())

    give(
        group,
        change,
        then="plans are then published again, and a probation of the group ends",
        config=config,
        output=output,
    )
    if not was_paused:
        note(f"{plain(group)} was not paused: this order only ends a probation after a plan that hurt")


def trigger(
    group: GroupArgument, *, output: OutputOption = "text", config: StreamConfigOption = None
) -> None:
    """Evaluate a group at once; its next plan skips the guards.

    Example: lagwise trigger billing

    A better plan is published without waiting for confirmations or a cooldown. If none is found within ten minutes,
    the trigger expires.

    A paused group stays paused, pinned partitions stay where they are, and a dry run stays one. A plan that waits for
    approval is made again, and waits.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    written = give(
        group,
        lambda held: orders_change.trigger(held, now_ms=clock.now_ms()),
        then="it then evaluates the group at once, and no guard holds its plan back",
        config=config,
        output=output,
    )
    if written.paused:
        note(f"{plain(group)} is paused: no plan is published before {shell.command('resume', group)}")


def pin(
    group: GroupArgument,
    partitions: Annotated[
        list[str], typer.Argument(metavar="TOPIC[:0-3,7]", help="Partitions, or a whole topic.")
    ],
    *,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Keep partitions of a group where they are.

    Example: lagwise pin billing invoices:0-3,7 payments

    No plan moves pinned partitions. A topic without numbers is pinned as a whole, with partitions that are added
    later. Earlier pins stay.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    pins = parse_pins(partitions)
    give(
        group,
        lambda held: orders_change.pin(held, pins),
        then="plans made after that leave pinned partitions where they are",
        config=config,
        output=output,
        pins=pins,
    )


def unpin(
    group: GroupArgument,
    partitions: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC[:0-3,7]", help="Default: everything that is pinned.")
    ] = None,
    *,
    output: OutputOption = "text",
    config: StreamConfigOption = None,
) -> None:
    """Let plans move pinned partitions of a group again.

    Example: lagwise unpin billing invoices:7 payments

    Without TOPIC, all of them. Safe to repeat: partitions that are not pinned are ignored.

    Exit status: 0 the order was written, 1 it was not, 2 wrong usage.
    """
    pins = parse_pins(partitions or ())
    give(
        group,
        lambda held: orders_change.unpin(held, pins),
        then="plans made after that may move every partition that is not pinned",
        config=config,
        output=output,
    )


def give(
    group: str,
    change: Callable[[Orders], Orders],
    *,
    then: str,
    config: Path | None,
    output: Literal["text", "json"],
    pins: Pins | None = None,
) -> Orders:
    """Write the changed orders, print what now applies and from when on, and return the orders."""
    settings = load(find_config(config))
    with progress("asking the brokers"), orders_topic(settings) as topic:
        try:
            written, found = topic.order(group, change, by=who())
        except EncodeError as error:
            raise typer.BadParameter(str(error)) from None
        doubtful = doubts(topic, group, pins or {})
    _tell_skipped(found, topic)
    for doubt in doubtful:
        note(doubt)
    if output == "json":
        typer.echo(json.dumps(row(written), default=json_value))
    else:
        typer.echo(
            f"{plain(group)} on cluster {plain(written.cluster)}: {as_text(written)}. "
            f"The stream reads this within {settings.trigger.interval_s} s; {then}."
        )
    return written


def _tell_skipped(found: Found, topic: OrdersTopic) -> None:
    if found.skipped:
        note(
            f"skipped {len(found.skipped)} record(s) on topic {topic.topic} that are not orders, "
            f"the last at {found.skipped[-1]}; find out who writes there"
        )


def who() -> str:
    """Author of an order: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a user id without a name.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
