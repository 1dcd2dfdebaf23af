"""The lines that a follower prints, one for each thing that happens to it.

m1 joined 3 m1-50381e11 0,1        what Kafka assigned: generation, member id, all partitions; - for none
m1 gained 3 0,1                    before the first record of them is processed; generation
m1 revoked 0,1                     behind the last record of them, and its commit
m1 lost 0,1                        they are another's already
m1 record 0 17                     processed: partition, offset
m1 stopped                         the last one
"""

from typing import Any


class MalformedLineError(ValueError):
    """A line of none of these forms."""


def parse(text: str) -> dict[str, Any]:
    """A line as the judges of followers read it.

    Raises:
        MalformedLineError: It is none.
    """
    match text.split():
        case [who, "joined", generation, member, places]:
            more = {"generation": _number(generation), "member": member, "places": _places(places)}
        case [who, "gained", generation, places]:
            more = {"generation": _number(generation), "places": _places(places)}
        case [who, "revoked" | "lost", places]:
            more = {"places": _places(places)}
        case [who, "record", place, offset]:
            more = {"place": _number(place), "offset": _number(offset)}
        case [who, "stopped" | "hurt" | "woken"]:
            more = {}
        case _:
            raise MalformedLineError(text)
    return {"who": who, "what": text.split()[1], **more}


def _places(text: str) -> list[int]:
    return [] if text == "-" else [_number(part) for part in text.split(",")]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise MalformedLineError(text)
    return int(text)
