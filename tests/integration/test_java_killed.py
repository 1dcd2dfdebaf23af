"""Processes in Java that are killed and stopped while their group applies a plan: the short form of the fault test."""

import signal
from pathlib import Path

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_processes import Processes
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import COOPERATIVE
from tests.support.waiting import wait_until


def rotated(base: dict[str, list[int]]) -> dict[str, list[int]]:
    """Every partition goes to the next member."""
    names = sorted(base)
    return {name: base[names[number - 1]] for number, name in enumerate(names)}


def begin_to_apply(processes: Processes, base: dict[str, list[int]], generation: int) -> None:
    """Publish a plan, and return when a member has given up the first of its partitions."""
    so_far = processes.count("revoked")
    processes.publish(generation, base, rotated(base))
    wait_until(lambda: processes.count("revoked") > so_far, what="the first step of a plan")


def test_nothing_is_lost_and_nothing_has_two_owners(broker: EmbeddedBroker, tmp_path: Path) -> None:
    options = {"command": java_jar().command("lagwise.follow.Members"), "assignor": COOPERATIVE}
    module = "tests.support.java.java_process"
    with Processes(broker.bootstrap_servers, "java-killed", tmp_path, module=module) as processes:
        for who in "abc":
            processes.start(who, **options)
        generation, _, base = processes.base(3)

        begin_to_apply(processes, base, generation)
        processes.send("a", signal.SIGKILL)
        processes.start("d", **options)
        generation, _, base = processes.base(3, after=generation)

        begin_to_apply(processes, base, generation)
        processes.send("b", signal.SIGSTOP)
        generation, _, _ = processes.base(2, after=generation)
        processes.send("b", signal.SIGCONT)
        processes.base(3, after=generation)
        processes.finish()

        assert processes.missing() == []
        assert processes.overlaps() == []
