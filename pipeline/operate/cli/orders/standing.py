"""Orders of the page, like those of the commands `pause`, `resume`, `pin` and `unpin`."""

import typer

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import OrderError
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.change import Pins, as_text, parse_pins
from pipeline.operate.cli.orders.doubts import doubts
from pipeline.operate.cli.orders.topic import Change, orders_topic
from pipeline.operate.output import plain
from pipeline.operate.serve.orders import Standing


def stand(config: Config, group: str, *, order: Standing, partitions: str, reason: str, by: str) -> str:
    """Write the order; return sentences on what then applies to the group, and from when on.

    `pin` and `unpin` take partitions as their commands do, separated by blanks; `unpin` without any unpins all.

    Raises:
        OrderError: The partitions are invalid, or cannot be unpinned.
        BrokerUnavailableError: The order could not be written.
        AccessRefusedError: This user may not write it.
        EncodeError: A text cannot be encoded.
    """
    try:
        pins = parse_pins(partitions.split()) if order in {"pin", "unpin"} else {}
        if order == "pin" and not pins:
            raise OrderError("pin names no partitions: write TOPIC or TOPIC:0-3,7")
        change = _change(order, pins, reason)
        with orders_topic(config) as topic:
            written, _ = topic.order(group, change, by=by)
            doubtful = doubts(topic, group, pins if order == "pin" else {})
    except typer.BadParameter as error:
        raise OrderError(error.message) from None
    what_holds = (
        f"{by} gave the order {order}. Orders for {plain(group)} are now: {as_text(written)}. "
        f"The stream reads this within {config.trigger.interval_s} s."
    )
    return " ".join((what_holds, *(f"Note: {one}." for one in doubtful)))


def _change(order: Standing, pins: Pins, reason: str) -> Change:
    if order == "pause":
        return lambda held: orders_change.pause(held, reason=reason)
    if order == "resume":
        return lambda held: orders_change.resume(held, now_ms=clock.now_ms())
    if order == "pin":
        return lambda held: orders_change.pin(held, pins)
    return lambda held: orders_change.unpin(held, pins)
