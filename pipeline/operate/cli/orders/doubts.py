"""Possible mistakes in an order, which is written nevertheless."""

from pipeline.operate.cli.orders.change import Pins
from pipeline.operate.cli.orders.topic import OrdersTopic
from pipeline.operate.output import plain


def doubts(topic: OrdersTopic, group: str, pins: Pins) -> list[str]:
    """Names that may be typing errors; the order is valid, since groups and topics may be created later."""
    found = []
    if not topic.knows_group(group):
        found.append(
            f"the cluster has no group {plain(group)} now; check the name: if it is right, the order "
            "waits for the group"
        )
    for name in sorted(pins):
        count = topic.partitions_of(name)
        if count is None:
            found.append(
                f"the cluster shows no topic {plain(name)} now; check the name: if it is right, the pin "
                "waits for the topic"
            )
        elif pins[name] and pins[name][-1] >= count:
            found.append(
                f"topic {plain(name)} has only {count} partition(s) now; check the numbers: if they are "
                "right, the pin waits for the others"
            )
    return found
