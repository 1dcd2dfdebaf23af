"""Hundreds of hand-overs among real followers that are killed, stopped and assigned the same generation twice."""

import logging
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from assignor.protocol.acks import Applied, Release, Taken, Void
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.followers.follow_plans import at_random
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

HAND_OVERS = 300
HURTS = 12
ZOMBIES = 3
_AT_MOST_S = 240.0
_HURT_EVERY_S = 1.5
_BEYOND_SESSION_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """A process is stopped, or will stop itself, and goes on after a time."""

    since: float
    for_s: float


def disturb(processes: Processes, random: Random, asleep: dict[str, Sleep], number: int) -> None:
    """Hurt one of the members, or let it subscribe again."""
    current = processes.current()
    if current is None or asleep or len(current[1]) < 3:
        return
    who = random.choice(sorted(current[1]))
    what = random.choice(["kill", "stop", "zombie", "again"])
    now = time.monotonic()
    if what == "kill":
        processes.send(who, signal.SIGKILL)
        processes.start(f"m{number}")
    elif what == "stop":
        asleep[who] = Sleep(since=now, for_s=random.choice([1.0, _BEYOND_SESSION_S]))
        processes.send(who, signal.SIGSTOP)
    elif what == "zombie":
        asleep[who] = Sleep(since=now, for_s=_BEYOND_SESSION_S)
        processes.send(who, signal.SIGUSR2)
    else:
        processes.send(who, signal.SIGUSR1)


def wake(processes: Processes, asleep: dict[str, Sleep]) -> None:
    began = {line["who"]: line["at"] for line in processes.lines() if line["what"] == "hurt"}
    for who, sleep in list(asleep.items()):
        if began.get(who, 0.0) >= sleep.since and time.monotonic() > began[who] + sleep.for_s:
            processes.send(who, signal.SIGCONT)
            del asleep[who]


def publish(processes: Processes, random: Random) -> None:
    """A plan at random, when all members are in one generation; records of the control topic come as they should not."""
    current = processes.current()
    if current is None:
        return
    generation, _, base = current
    processes.publish_in_disorder(generation, base, at_random(base, processes.partitions, random), random)


def hand_overs(processes: Processes) -> int:
    return len({ack for ack in processes.all_acks() if isinstance(ack, Taken)})


def zombies(processes: Processes) -> list[dict[str, Any]]:
    """What became of hand-over commits by members that had slept beyond their session."""
    return [line for line in processes.lines() if line["what"] == "zombie"]


def run(processes: Processes, random: Random) -> None:
    """Plans and disturbances, until there were enough of both."""
    asleep: dict[str, Sleep] = {}
    began_s = hurt_s = time.monotonic()
    number = 0
    while (
        asleep
        or processes.count("hurt") < HURTS
        or hand_overs(processes) < HAND_OVERS
        or len(zombies(processes)) < ZOMBIES
    ):
        assert time.monotonic() < began_s + _AT_MOST_S
        publish(processes, random)
        wake(processes, asleep)
        if time.monotonic() > hurt_s + _HURT_EVERY_S:
            hurt_s, number = time.monotonic(), number + 1
            disturb(processes, random, asleep, number)


def test_hundreds_of_hand_overs_under_kills_lose_nothing_and_have_one_owner(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "chaos", tmp_path, partitions=8) as processes:
        for who in "abcd":
            processes.start(who)
        processes.base(4)

        run(processes, Random(5))
        processes.finish()

        said = processes.all_acks()
        released, taken = ({a for a in said if isinstance(a, kind)} for kind in (Release, Taken))
        voids = sorted({ack.why for ack in said if isinstance(ack, Void)})
        log.info(
            "%s records, %s repeated, %s released, %s taken, %s hurt, %s zombies, %s generations, %s late plans, void: %s",
            processes.produced * processes.partitions,
            processes.repeated(),
            len(released),
            len(taken),
            processes.count("hurt"),
            len(zombies(processes)),
            len({ack.generation for ack in said}),
            processes.late,
            voids,
        )
        assert processes.late > 0
        assert not any(zombie["accepted"] for zombie in zombies(processes))
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_broker_that_is_killed_in_a_hand_over_loses_nothing(tmp_path: Path) -> None:
    with small_broker() as own:
        create_offsets_topic(own.bootstrap_servers)
        with Processes(own.bootstrap_servers, "outage", tmp_path, partitions=8) as processes:
            for who in "abc":
                processes.start(who)
            generation, _, base = processes.base(3)
            target = dict(zip(sorted(base), [base[name] for name in sorted(base, reverse=True)], strict=True))

            epoch = processes.publish(generation, base, target)
            processes.wait_for_acks(Release, epoch, 1)
            own.kill()
            own.start()
            produced = processes.produced
            wait_until(lambda: processes.produced > produced + 200, what="records after the outage")
            processes.finish()

            assert processes.missing() == []
            assert processes.overlaps() == []


def test_judge_sees_the_second_owner_when_tokens_are_forgotten(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "blind", tmp_path, partitions=8) as processes:
        for who in "abc":
            processes.start(who, forget="yes")
        deadline = time.monotonic() + 120
        while not processes.overlaps() and time.monotonic() < deadline:
            generation, ids, base = processes.base(3)
            names = sorted(base)
            target = {name: base[names[number - 1]] for number, name in enumerate(names)}
            epoch = processes.publish(generation, base, target)
            processes.wait_for_acks(Applied, epoch, 3)
            # Who does not lead is assigned the same generation again: two of the three.
            for who in sorted(ids):
                _subscribe_again(processes, who)

        assert processes.overlaps()


def _subscribe_again(processes: Processes, who: str) -> None:
    """Return when it is assigned something."""
    gained = processes.count("gained", who=who)
    processes.send(who, signal.SIGUSR1)
    wait_until(lambda: processes.count("gained", who=who) > gained, what=f"{who} assigned")
