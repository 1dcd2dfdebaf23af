"""Real members under the plug-ins, killed and stopped while their group applies one plan after the other."""

import logging
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from assignor.protocol.acks import Applied
from assignor.strategies.registry import RebalanceProtocol
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.follow_crew import Crew
from tests.support.follow_plans import at_random
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

MODULE = "tests.support.plugin_process"
EAGER = {"client": "kafka-python", "protocol": RebalanceProtocol.EAGER}
COOPERATIVE = {"client": "kafka-python", "protocol": RebalanceProtocol.COOPERATIVE}
AIOKAFKA = {"client": "aiokafka"}

MEMBERS = 4
HURTS = ("kill", "stop", "zombie") * 3
PLANS_BETWEEN = 3
_WITHIN_S = 40.0


class Plans:
    """Plans at random, one for each generation in which the group comes to rest.

    Attributes:
        published: How many there were.
        applied: How many the members were then assigned, all of them just so.
    """

    def __init__(self, crew: Crew, random: Random) -> None:
        self._crew, self._random = crew, random
        self._generation, self._target = -1, dict[str, list[int]]()
        self.published = self.applied = 0

    def publish(self, members: int) -> bool:
        """Publish one if that many are at rest in a generation that has none yet; whether they were."""
        now = self._crew.current(after=self._generation)
        if now is None or len(now[1]) != members:
            return False
        generation, _, base = now
        self.applied += base == self._target
        self.published += 1
        self._generation, self._target = generation, at_random(base, self._crew.partitions, self._random)
        self._crew.publish(generation, base, self._target)
        return True

    def go_on(self, members: int) -> None:
        """Return when some more were applied by that many, and another is on its way."""
        enough = self.applied + PLANS_BETWEEN

        def went_on() -> bool:
            return self.publish(members) and self.applied >= enough

        wait_until(went_on, what=f"plan {self.published} applied by {members}", within_s=_WITHIN_S)


def begin_to_apply(crew: Crew) -> None:
    """Return when a member gives up or takes the first partitions of the plan that is on its way."""
    so_far = len(crew.lines())
    wait_until(lambda: any("places" in line for line in crew.lines()[so_far:]), what="a rebalance")


def stop_for_generations(crew: Crew, plans: Plans, who: str, what: str) -> None:
    """It goes on when it is no member any more and the others have applied plans without it."""
    hurts = crew.count("hurt")
    crew.send(who, signal.SIGUSR2 if what == "zombie" else signal.SIGSTOP)

    def stopped() -> bool:
        # With no partition it commits nothing: another plan will give it some.
        plans.publish(MEMBERS)
        return crew.count("hurt") > hurts

    wait_until(stopped, what=f"{who} stopped")
    plans.go_on(MEMBERS - 1)
    crew.send(who, signal.SIGCONT)


def run(crew: Crew, plans: Plans, random: Random, options: Mapping[str, Any]) -> None:
    """Each hurt in its turn, while a plan is being applied, with plans in between."""
    alive = ["a", "b", "c", "d"]
    for who in alive:
        crew.start(who, **options)
    for number, what in enumerate(HURTS):
        plans.go_on(MEMBERS)
        if random.random() < 0.5:
            begin_to_apply(crew)
        who = random.choice(alive)
        if what == "kill":
            crew.send(who, signal.SIGKILL)
            alive[alive.index(who)] = f"m{number}"
            crew.start(f"m{number}", **options)
        else:
            stop_for_generations(crew, plans, who, what)
    plans.go_on(MEMBERS)


def stale_commits(crew: Crew) -> list[dict[str, Any]]:
    """Those that members began when they had been stopped, and before they were assigned anything again.

    One that was on its way when its member was stopped was a member's, and may have been accepted.
    """
    newest, late, found = -1, dict[str, int](), list[dict[str, Any]]()
    woken = dict[str, float]()
    for line in sorted(crew.lines(), key=lambda line: line["at"]):
        who, generation = line["who"], line.get("generation", -1)
        newest = max(newest, generation)
        if line["what"] == "woken":
            late[who], woken[who] = newest, line["at"]
        elif generation > late.get(who, generation):
            del late[who]
        elif line["what"] == "commit" and who in late and line["begun"] > woken[who]:
            found.append(line)
    return found


def committed(crew: Crew) -> list[int]:
    """Offset of the group in each partition."""
    consumer = Consumer({"bootstrap.servers": crew.bootstrap, "group.id": crew.group})
    try:
        places = [TopicPartition(crew.topic, number) for number in range(crew.partitions)]
        return [place.offset for place in consumer.committed(places, timeout=10)]
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(EAGER, id="kafka-python-eager"),
        pytest.param(COOPERATIVE, id="kafka-python-cooperative"),
        pytest.param(AIOKAFKA, id="aiokafka"),
    ],
)
def test_group_whose_members_are_killed_between_plans_loses_nothing_and_has_one_owner(
    broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest, options: Mapping[str, Any]
) -> None:
    name = request.node.callspec.id
    with Crew(broker.bootstrap_servers, name, tmp_path, partitions=8, module=MODULE) as crew:
        random = Random(5)
        plans = Plans(crew, random)

        run(crew, plans, random, {**options, "cluster": crew.cluster})
        crew.drain()
        wait_until(lambda: committed(crew) == [crew.produced] * crew.partitions, what="all committed")
        crew.finish()

        stale = stale_commits(crew)
        log.info(
            "%s: %s records, %s repeated, %s hurt, stale commits %s, %s plans, %s applied, %s acknowledged, %s generations",
            name,
            crew.produced * crew.partitions,
            crew.repeated(),
            crew.count("hurt"),
            Counter(line["refused"] for line in stale),
            plans.published,
            plans.applied,
            len({ack.epoch for ack in crew.all_acks() if isinstance(ack, Applied)}),
            len({line["generation"] for line in crew.lines() if "generation" in line}),
        )
        assert len(stale) >= HURTS.count("zombie")
        assert not any(line["accepted"] for line in stale)
        assert crew.missing() == []
        assert crew.overlaps() == []


def test_judge_sees_the_second_owner_when_a_member_does_not_say_what_it_still_reads(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Crew(broker.bootstrap_servers, "silent", tmp_path, partitions=8, module=MODULE) as crew:
        for who in "abc":
            crew.start(who, **COOPERATIVE, cluster=crew.cluster, silent="yes")
        plans = Plans(crew, Random(5))

        wait_until(lambda: plans.publish(3) and crew.overlaps(), what="a second owner", within_s=60)
