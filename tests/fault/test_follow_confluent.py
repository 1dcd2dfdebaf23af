"""Hundreds of hand-overs among real followers that are killed, stopped and assigned the same generation twice."""

import logging
import signal
import time
from pathlib import Path
from random import Random

from assignor.protocol.acks import Release, Taken, Void
from pipeline.embedded import EmbeddedBroker
from tests.support.broker import create_offsets_topic, small_broker
from tests.support.follow_crew import Crew
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

HAND_OVERS = 300
HURTS = 12
_AT_MOST_S = 200.0
_HURT_EVERY_S = 1.5


def disturb(crew: Crew, random: Random, stopped: dict[str, float], number: int) -> None:
    """Hurt one of the members, or let it subscribe again."""
    current = crew.current()
    if current is None or stopped or len(current[1]) < 3:
        return
    who = random.choice(sorted(current[1]))
    what = random.choice(["kill", "stop", "again", "again"])
    if what == "kill":
        crew.send(who, signal.SIGKILL)
        crew.start(f"m{number}")
    elif what == "stop":
        crew.send(who, signal.SIGSTOP)
        # Shorter and longer than its session.
        stopped[who] = time.monotonic() + random.choice([1.0, 5.0])
    else:
        crew.send(who, signal.SIGUSR1)


def wake(crew: Crew, stopped: dict[str, float]) -> None:
    for who in [who for who, until in stopped.items() if time.monotonic() > until]:
        crew.send(who, signal.SIGCONT)
        del stopped[who]


def publish(crew: Crew, random: Random) -> None:
    """A plan at random, when all members are in one generation."""
    current = crew.current()
    if current is None:
        return
    generation, _, base = current
    target: dict[str, list[int]] = {member: [] for member in base}
    for partition in range(crew.partitions):
        target[random.choice(sorted(target))].append(partition)
    crew.publish(generation, base, target)


def hand_overs(crew: Crew) -> int:
    return len({ack for ack in crew.all_acks() if isinstance(ack, Taken)})


def hurts(crew: Crew) -> int:
    return sum(line["what"] == "hurt" for line in crew.lines())


def run(crew: Crew, random: Random) -> None:
    """Plans and disturbances, until there were enough of both."""
    stopped: dict[str, float] = {}
    began_s = hurt_s = time.monotonic()
    number = 0
    while hurts(crew) < HURTS or hand_overs(crew) < HAND_OVERS:
        assert time.monotonic() < began_s + _AT_MOST_S
        publish(crew, random)
        wake(crew, stopped)
        if time.monotonic() > hurt_s + _HURT_EVERY_S:
            hurt_s, number = time.monotonic(), number + 1
            disturb(crew, random, stopped, number)
    for who in stopped:
        crew.send(who, signal.SIGCONT)


def test_hundreds_of_hand_overs_under_kills_lose_nothing_and_have_one_owner(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Crew(broker.bootstrap_servers, "chaos", tmp_path, partitions=8) as crew:
        for who in "abcd":
            crew.start(who)
        crew.base(4)

        run(crew, Random(5))
        crew.finish()

        said = crew.all_acks()
        released, taken = ({a for a in said if isinstance(a, kind)} for kind in (Release, Taken))
        voids = sorted({ack.why for ack in said if isinstance(ack, Void)})
        log.info(
            "%s records, %s repeated, %s released, %s taken, %s hurt, generations %s, void: %s",
            crew.produced * crew.partitions,
            crew.repeated(),
            len(released),
            len(taken),
            hurts(crew),
            len({ack.generation for ack in said}),
            voids,
        )
        assert crew.missing() == []
        assert crew.overlaps() == []


def test_broker_that_is_killed_in_a_hand_over_loses_nothing(tmp_path: Path) -> None:
    with small_broker() as own:
        create_offsets_topic(own.bootstrap_servers)
        with Crew(own.bootstrap_servers, "outage", tmp_path, partitions=8) as crew:
            for who in "abc":
                crew.start(who)
            generation, _, base = crew.base(3)
            target = dict(zip(sorted(base), [base[name] for name in sorted(base, reverse=True)], strict=True))

            crew.publish(generation, base, target)
            own.kill()
            own.start()
            produced = crew.produced
            wait_until(lambda: crew.produced > produced + 200, what="records after the outage")
            crew.finish()

            assert crew.missing() == []
            assert crew.overlaps() == []


def test_judge_sees_the_second_owner_when_tokens_are_forgotten(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Crew(broker.bootstrap_servers, "blind", tmp_path, partitions=8) as crew:
        for who in "abc":
            crew.start(who, forget="yes")
        _, ids, _ = crew.base(3)

        random = Random(5)
        deadline = time.monotonic() + 60
        while not crew.overlaps() and time.monotonic() < deadline:
            publish(crew, random)
            crew.send(random.choice(sorted(ids)), signal.SIGUSR1)

        assert crew.overlaps()
