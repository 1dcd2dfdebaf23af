"""Members as processes, killed and stopped while their group applies one plan after the other, and what came of it."""

import logging
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from assignor.protocol.acks import Applied
from tests.support.followers.follow_plans import at_random
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

MEMBERS = 4
_PLANS_BETWEEN = 3
_WITHIN_S = 40.0

Halt = Callable[[Processes, str, str], None]
"""Stops a member for good, in the way of "stop" (anywhere) or "zombie" (just before a commit); returns at once."""


class Plans:
    """Plans at random, one for each generation in which the group comes to rest.

    Attributes:
        published: How many there were.
        applied: How many the members were then assigned, all of them just so.
    """

    def __init__(self, processes: Processes, random: Random) -> None:
        self._processes, self._random = processes, random
        self._generation, self._target = -1, dict[str, list[int]]()
        self.published = self.applied = 0

    def publish(self, members: int) -> bool:
        """Publish one if that many are at rest in a generation that has none yet; whether they were."""
        now = self._processes.current(after=self._generation)
        if now is None or len(now[1]) != members:
            return False
        generation, _, base = now
        self.applied += base == self._target
        self.published += 1
        self._generation, self._target = generation, at_random(base, self._processes.partitions, self._random)
        self._processes.publish(generation, base, self._target)
        return True

    def go_on(self, members: int) -> None:
        """Return when some more were applied by that many, and another is on its way."""
        enough = self.applied + _PLANS_BETWEEN

        def went_on() -> bool:
            return self.publish(members) and self.applied >= enough

        wait_until(went_on, what=f"plan {self.published} applied by {members}", within_s=_WITHIN_S)


def hurt_in_turn(
    processes: Processes, *, hurts: Sequence[str], halt: Halt, options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Each hurt in its turn, while a plan is being applied, with plans in between.

    Args:
        processes: Without members yet.
        hurts: Each is "kill", "stop" or "zombie".
        halt: Of the members' kind.
        options: Of each member.

    Returns:
        What members wrote of commits that they began when they had been stopped, and before they were assigned anything again.
    """
    random = Random(5)
    plans = Plans(processes, random)
    alive = ["a", "b", "c", "d"]
    for who in alive:
        processes.start(who, **options)
    for number, what in enumerate(hurts):
        plans.go_on(MEMBERS)
        if random.random() < 0.5:
            _begin_to_apply(processes)
        who = random.choice(alive)
        if what == "kill":
            processes.send(who, signal.SIGKILL)
            alive[alive.index(who)] = f"m{number}"
            processes.start(f"m{number}", **options)
        else:
            _stop_for_generations(processes, plans, who, partial(halt, processes, who, what))
    plans.go_on(MEMBERS)
    return _to_the_end(processes, plans)


def _begin_to_apply(processes: Processes) -> None:
    """Return when a member gives up or takes the first partitions of the plan that is on its way."""
    so_far = len(processes.lines())
    wait_until(lambda: any("places" in line for line in processes.lines()[so_far:]), what="a rebalance")


def _stop_for_generations(processes: Processes, plans: Plans, who: str, halt: Callable[[], None]) -> None:
    """It goes on when it is no member any more and the others have applied plans without it."""
    hurts = processes.count("hurt")
    halt()

    def stopped() -> bool:
        # With no partition it commits nothing: another plan will give it some.
        plans.publish(MEMBERS)
        return processes.count("hurt") > hurts

    wait_until(stopped, what=f"{who} stopped")
    plans.go_on(MEMBERS - 1)
    processes.send(who, signal.SIGCONT)


def drained(processes: Processes) -> None:
    """Return when every record was processed and committed, and every process has left."""
    processes.drain()
    wait_until(
        lambda: _committed(processes) == [processes.produced] * processes.partitions, what="all committed"
    )
    processes.finish()


def _to_the_end(processes: Processes, plans: Plans) -> list[dict[str, Any]]:
    drained(processes)
    stale = _stale_commits(processes)
    log.info(
        "%s: %s records, %s repeated, %s hurt, stale commits %s, %s plans, %s applied, %s acknowledged, %s generations",
        processes.group,
        processes.produced * processes.partitions,
        processes.repeated(),
        processes.count("hurt"),
        Counter(line["refused"] for line in stale),
        plans.published,
        plans.applied,
        len({ack.epoch for ack in processes.all_acks() if isinstance(ack, Applied)}),
        len({line["generation"] for line in processes.lines() if "generation" in line}),
    )
    return stale


def _stale_commits(processes: Processes) -> list[dict[str, Any]]:
    """Those that members began when they had been stopped, and before they were assigned anything again.

    One that was on its way when its member was stopped was a member's, and may have been accepted.
    """
    newest, late, found = -1, dict[str, int](), list[dict[str, Any]]()
    woken = dict[str, float]()
    for line in sorted(processes.lines(), key=lambda line: line["at"]):
        who, generation = line["who"], line.get("generation", -1)
        newest = max(newest, generation)
        if line["what"] == "woken":
            late[who], woken[who] = newest, line["at"]
        elif generation > late.get(who, generation):
            del late[who]
        elif line["what"] == "commit" and who in late and line["begun"] > woken[who]:
            found.append(line)
    return found


def _committed(processes: Processes) -> list[int]:
    """Offset of the group in each partition."""
    consumer = Consumer({"bootstrap.servers": processes.bootstrap, "group.id": processes.group})
    try:
        places = [TopicPartition(processes.topic, number) for number in range(processes.partitions)]
        return [place.offset for place in consumer.committed(places, timeout=10)]
    finally:
        consumer.close()
