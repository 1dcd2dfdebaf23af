"""Records that a group has processed more than once, and why."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Repeats(NamedTuple):
    """Times that a record was processed again."""

    by_kill: int
    """A member that had processed it was killed while it read the partition."""
    by_rebalance: int
    """All that had processed it gave the partition up alive, in a rebalance or as they left."""


def repeats(lines: Iterable[Mapping[str, Any]]) -> Repeats:
    """What the lines of `follow_processes` say of it; a member that is hurt is killed."""
    current: dict[tuple[str, int], set[int]] = {}
    seen: set[tuple[int, int]] = set()
    orphaned: set[tuple[int, int]] = set()
    by_kill = by_rebalance = 0
    for line in sorted(lines, key=lambda line: line["at"]):
        who = line["who"]
        if line["what"] == "record":
            record = (line["place"], line["offset"])
            by_kill += record in orphaned
            by_rebalance += record in seen and record not in orphaned
            seen.add(record)
            current.setdefault((who, line["place"]), set()).add(line["offset"])
        elif line["what"] == "hurt":
            for name, place in [key for key in current if key[0] == who]:
                orphaned |= {(place, offset) for offset in current.pop((name, place))}
        elif line["what"] in ("revoked", "lost"):
            for place in line["places"]:
                current.pop((who, place), None)
    return Repeats(by_kill=by_kill, by_rebalance=by_rebalance)
