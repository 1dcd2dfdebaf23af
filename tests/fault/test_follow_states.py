"""A real follower killed, or stopped for longer than its session, at every state of a hand-over."""

import signal
from pathlib import Path

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_plans import one_moved
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

OLD_OWNER = ("following", "stopping", "stopped", "committed", "released")
NEW_OWNER = ("following", "offered", "taken")
SIGNALS = ("KILL", "STOP")


def wait_for_hurt(processes: Processes, who: str, count: int = 1) -> None:
    wait_until(lambda: processes.count("hurt", who=who) >= count, what=f"hurt {count} of {who}", within_s=40)


def hand_over(processes: Processes, old_owner: str, new_owner: str) -> int:
    """Publish a plan that moves one partition between these processes, and give the generation it is for."""
    generation, ids, base = processes.base(3)
    processes.publish(generation, base, one_moved(base, ids[old_owner], ids[new_owner]))
    return generation


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("who", "point"),
    [*(("old_owner", point) for point in OLD_OWNER), *(("new_owner", point) for point in NEW_OWNER)],
)
def test_member_hurt_at_a_state_of_the_hand_over_loses_nothing(
    broker: EmbeddedBroker, tmp_path: Path, who: str, point: str, number: str
) -> None:
    with Processes(broker.bootstrap_servers, f"{who}-{point}-{number}", tmp_path, partitions=3) as processes:
        processes.start("a", hurt=f"{point}:{number}")
        processes.start("b")
        processes.start("c")

        old_owner, new_owner = ("a", "b") if who == "old_owner" else ("b", "a")
        generation = hand_over(processes, old_owner, new_owner)
        wait_for_hurt(processes, "a")
        if number == "STOP":
            processes.base(2, after=generation)
            processes.send("a", signal.SIGCONT)
        processes.base(3 if number == "STOP" else 2, after=generation)
        processes.finish()

        assert processes.missing() == []
        assert processes.overlaps() == []


@pytest.mark.parametrize("number", SIGNALS)
def test_member_hurt_again_when_its_commit_was_refused_loses_nothing(
    broker: EmbeddedBroker, tmp_path: Path, number: str
) -> None:
    with Processes(broker.bootstrap_servers, f"pending-{number}", tmp_path, partitions=3) as processes:
        processes.start("a", hurt=f"offered:STOP,out-pending:{number}")
        processes.start("b")
        processes.start("c")

        generation = hand_over(processes, "b", "a")
        wait_for_hurt(processes, "a")
        processes.base(2, after=generation)
        processes.send("a", signal.SIGCONT)
        wait_for_hurt(processes, "a", 2)
        if number == "STOP":
            processes.send("a", signal.SIGCONT)
            processes.base(3, after=generation)
        processes.finish()

        assert not any(line["accepted"] for line in processes.lines() if line["what"] == "zombie")
        assert processes.missing() == []
        assert processes.overlaps() == []


@pytest.mark.parametrize("number", SIGNALS)
def test_old_owner_hurt_as_it_rejoins_for_want_of_a_new_owner_loses_nothing(
    broker: EmbeddedBroker, tmp_path: Path, number: str
) -> None:
    with Processes(broker.bootstrap_servers, f"rejoin-{number}", tmp_path, partitions=3) as processes:
        processes.start("a", hurt=f"rejoin:{number}", follower={"take_timeout_s": 1.0})
        processes.start("b", hurt="offered:STOP")
        processes.start("c")

        generation = hand_over(processes, "a", "b")
        wait_for_hurt(processes, "b")
        wait_for_hurt(processes, "a")
        processes.base(1, after=generation)
        processes.send("b", signal.SIGCONT)
        if number == "STOP":
            processes.send("a", signal.SIGCONT)
        processes.base(3 if number == "STOP" else 2, after=generation)
        processes.finish()

        assert processes.missing() == []
        assert processes.overlaps() == []
