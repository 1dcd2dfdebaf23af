"""What groups of followers go through when lagwise's topics, or their coordinator, are not what they should be."""

import time

from assignor.protocol.acks import Applied
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

AWAY, BACK = "follows no plan for now", "can be read again"


def start(processes: Processes) -> None:
    """Two members that have applied a plan."""
    for who in "ab":
        processes.start(who, patient="yes")
    apply_a_plan(processes)


_swapped: dict[str, int] = {}
"""Generation in which the members of a group have one another's partitions."""


def apply_a_plan(processes: Processes) -> None:
    """Everything changes hands, in the generation that there is; a rebalance may come between."""
    deadline = time.monotonic() + 60
    while True:
        generation, ids, base = processes.base(2)
        one, other = ids.values()
        back = _swapped.pop(processes.group, -1) == generation
        epoch = processes.publish(generation, base, base if back else {one: base[other], other: base[one]})
        try:
            processes.wait_for_acks(Applied, epoch, 2, within_s=10)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        else:
            if not back:
                _swapped[processes.group] = generation
            return


def goes_on(processes: Processes) -> None:
    """Records that are written from now on are processed, of all partitions."""
    offset = processes.produced + 5

    def processed() -> bool:
        newest = {line["place"]: line["offset"] for line in processes.lines() if line["what"] == "record"}
        return len(newest) == processes.partitions and min(newest.values()) >= offset

    wait_until(processed, what=f"offset {offset} of all partitions processed", within_s=20)


def assert_unharmed(processes: Processes) -> None:
    """All processes end by themselves, without an error, and nothing is lost."""
    processes.finish()

    assert processes.failed() == []
    assert processes.missing() == []
    assert processes.overlaps() == []


def both_say(processes: Processes, text: str) -> None:
    """Return when both have logged it."""
    wait_until(lambda: {*processes.logged(text)} == {"a", "b"}, what=f"{text!r} of both members", within_s=40)
