"""Real members in Java, killed and stopped while their group applies one plan after the other."""

import logging
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assignor.protocol.acks import Applied
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.fault.test_follow_plugins_killed import MEMBERS, Plans, begin_to_apply, committed, stale_commits
from tests.support.follow_processes import Processes
from tests.support.java_jar import JavaJar, java_jar
from tests.support.java_members import COOPERATIVE, EAGER
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

MODULE = "tests.support.java_process"
HURTS = ("kill", "kill", "kill", "stop", "kill", "zombie") * 5
"""Twenty are killed, ten are stopped for longer than their sessions, half of those just before a commit."""


@pytest.fixture(scope="module")
def jar() -> JavaJar:
    return java_jar()


def options(jar: JavaJar, assignor: str) -> dict[str, Any]:
    return {"command": jar.command("lagwise.follow.Members"), "assignor": assignor}


def stop(processes: Processes, who: str) -> None:
    """Stop it, and note that when it stands still: a thread in Java may write a line after the signal was sent."""
    process = processes._processes[who]
    process.send_signal(signal.SIGSTOP)

    def stands_still() -> bool:
        state = subprocess.run(
            ["ps", "-o", "state=", "-p", str(process.pid)], capture_output=True, check=True
        )
        return state.stdout.strip() == b"T"

    wait_until(stands_still, what=f"{who} stopped", every_s=0.005)
    processes.send(who, signal.SIGSTOP)


def stop_for_generations(processes: Processes, plans: Plans, who: str, what: str) -> None:
    """It goes on when it is no member any more and the others have applied plans without it."""
    hurts = processes.count("hurt")
    # Java keeps SIGUSR2 for itself.
    if what == "zombie":
        processes.send(who, signal.SIGHUP)
    else:
        stop(processes, who)

    def stopped() -> bool:
        # With no partition it commits nothing: another plan will give it some.
        plans.publish(MEMBERS)
        return processes.count("hurt") > hurts

    wait_until(stopped, what=f"{who} stopped")
    plans.go_on(MEMBERS - 1)
    processes.send(who, signal.SIGCONT)


def run(processes: Processes, plans: Plans, random: Random, given: Mapping[str, Any]) -> None:
    """Each hurt in its turn, while a plan is being applied, with plans in between."""
    alive = ["a", "b", "c", "d"]
    for who in alive:
        processes.start(who, **given)
    for number, what in enumerate(HURTS):
        plans.go_on(MEMBERS)
        if random.random() < 0.5:
            begin_to_apply(processes)
        who = random.choice(alive)
        if what == "kill":
            processes.send(who, signal.SIGKILL)
            alive[alive.index(who)] = f"m{number}"
            processes.start(f"m{number}", **given)
        else:
            stop_for_generations(processes, plans, who, what)
    plans.go_on(MEMBERS)


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
@pytest.mark.timeout(1200)
def test_group_whose_members_are_killed_between_plans_loses_nothing_and_has_one_owner(
    broker: EmbeddedBroker, jar: JavaJar, tmp_path: Path, request: pytest.FixtureRequest, assignor: str
) -> None:
    name = f"java-{request.node.callspec.id}"
    with Processes(broker.bootstrap_servers, name, tmp_path, partitions=8, module=MODULE) as processes:
        random = Random(5)
        plans = Plans(processes, random)

        run(processes, plans, random, options(jar, assignor))
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
        assert processes.count("hurt") == len(HURTS)
        assert stale
        assert not any(line["accepted"] for line in stale)
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_judge_sees_the_second_owner_when_the_leader_does_not_look_at_what_members_still_read(
    broker: EmbeddedBroker, jar: JavaJar, tmp_path: Path
) -> None:
    with Processes(
        broker.bootstrap_servers, "java-blind", tmp_path, partitions=8, module=MODULE
    ) as processes:
        for who in "abc":
            processes.start(who, **options(jar, "lagwise.follow.BlindAssignor"))
        plans = Plans(processes, Random(5))

        wait_until(lambda: plans.publish(3) and processes.overlaps(), what="a second owner", within_s=60)
