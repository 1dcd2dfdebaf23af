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
from tests.support.follow_plans import at_random
from tests.support.follow_processes import Processes
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
        enough = self.applied + PLANS_BETWEEN

        def went_on() -> bool:
            return self.publish(members) and self.applied >= enough

        wait_until(went_on, what=f"plan {self.published} applied by {members}", within_s=_WITHIN_S)


def begin_to_apply(processes: Processes) -> None:
    """Return when a member gives up or takes the first partitions of the plan that is on its way."""
    so_far = len(processes.lines())
    wait_until(lambda: any("places" in line for line in processes.lines()[so_far:]), what="a rebalance")


def stop_for_generations(processes: Processes, plans: Plans, who: str, what: str) -> None:
    """It goes on when it is no member any more and the others have applied plans without it."""
    hurts = processes.count("hurt")
    processes.send(who, signal.SIGUSR2 if what == "zombie" else signal.SIGSTOP)

    def stopped() -> bool:
        # With no partition it commits nothing: another plan will give it some.
        plans.publish(MEMBERS)
        return processes.count("hurt") > hurts

    wait_until(stopped, what=f"{who} stopped")
    plans.go_on(MEMBERS - 1)
    processes.send(who, signal.SIGCONT)


def run(processes: Processes, plans: Plans, random: Random, options: Mapping[str, Any]) -> None:
    """Each hurt in its turn, while a plan is being applied, with plans in between."""
    alive = ["a", "b", "c", "d"]
    for who in alive:
        processes.start(who, **options)
    for number, what in enumerate(HURTS):
        plans.go_on(MEMBERS)
        if random.random() < 0.5:
            begin_to_apply(processes)
        who = random.choice(alive)
        if what == "kill":
            processes.send(who, signal.SIGKILL)
            alive[alive.index(who)] = f"m{number}"
            processes.start(f"m{number}", **options)
        else:
            stop_for_generations(processes, plans, who, what)
    plans.go_on(MEMBERS)


def stale_commits(processes: Processes) -> list[dict[str, Any]]:
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


def committed(processes: Processes) -> list[int]:
    """Offset of the group in each partition."""
    consumer = Consumer({"bootstrap.servers": processes.bootstrap, "group.id": processes.group})
    try:
        places = [TopicPartition(processes.topic, number) for number in range(processes.partitions)]
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
    with Processes(broker.bootstrap_servers, name, tmp_path, partitions=8, module=MODULE) as processes:
        random = Random(5)
        plans = Plans(processes, random)

        run(processes, plans, random, {**options, "cluster": processes.cluster})
        processes.drain()
        wait_until(
            lambda: committed(processes) == [processes.produced] * processes.partitions, what="all committed"
        )
        processes.finish()

        stale = stale_commits(processes)
        log.info(
            "%s: %s records, %s repeated, %s hurt, stale commits %s, %s plans, %s applied, %s acknowledged, %s generations",
            name,
            processes.produced * processes.partitions,
            processes.repeated(),
            processes.count("hurt"),
            Counter(line["refused"] for line in stale),
            plans.published,
            plans.applied,
            len({ack.epoch for ack in processes.all_acks() if isinstance(ack, Applied)}),
            len({line["generation"] for line in processes.lines() if "generation" in line}),
        )
        assert len(stale) >= HURTS.count("zombie")
        assert not any(line["accepted"] for line in stale)
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_judge_sees_the_second_owner_when_a_member_does_not_say_what_it_still_reads(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "silent", tmp_path, partitions=8, module=MODULE) as processes:
        for who in "abc":
            processes.start(who, **COOPERATIVE, cluster=processes.cluster, silent="yes")
        plans = Plans(processes, Random(5))

        wait_until(lambda: plans.publish(3) and processes.overlaps(), what="a second owner", within_s=60)
