"""Real members in Java, killed and stopped while their group applies one plan after the other."""

import signal
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_hurts import Plans, hurt_in_turn
from tests.support.followers.follow_processes import Processes
from tests.support.java.java_jar import JavaJar, java_jar
from tests.support.java.java_members import COOPERATIVE, EAGER
from tests.support.waiting import wait_until

MODULE = "tests.support.java.java_process"
HURTS = ("kill", "kill", "kill", "stop", "kill", "zombie") * 5
"""Twenty are killed, ten are stopped for longer than their sessions, half of those just before a commit."""


@pytest.fixture(scope="module")
def jar() -> JavaJar:
    return java_jar()


def options(jar: JavaJar, assignor: str) -> dict[str, Any]:
    return {"command": jar.command("lagwise.follow.Members"), "assignor": assignor}


def halt(processes: Processes, who: str, what: str) -> None:
    """Stop it, and note that when it stands still: a thread in Java may write a line after the signal was sent."""
    if what == "zombie":
        # Java keeps SIGUSR2 for itself.
        processes.send(who, signal.SIGHUP)
        return
    process = processes._processes[who]
    process.send_signal(signal.SIGSTOP)

    def stands_still() -> bool:
        state = subprocess.run(
            ["ps", "-o", "state=", "-p", str(process.pid)], capture_output=True, check=True
        )
        return state.stdout.strip() == b"T"

    wait_until(stands_still, what=f"{who} stopped", every_s=0.005)
    processes.send(who, signal.SIGSTOP)


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
@pytest.mark.timeout(1200)
def test_group_whose_members_are_killed_between_plans_loses_nothing_and_has_one_owner(
    broker: EmbeddedBroker, jar: JavaJar, tmp_path: Path, request: pytest.FixtureRequest, assignor: str
) -> None:
    name = f"java-{request.node.callspec.id}"
    with Processes(broker.bootstrap_servers, name, tmp_path, partitions=8, module=MODULE) as processes:
        stale = hurt_in_turn(processes, hurts=HURTS, halt=halt, options=options(jar, assignor))

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
