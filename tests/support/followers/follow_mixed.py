"""One group of Java, kafka-python and aiokafka: members are killed and replaced while it applies plans."""

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from assignor.protocol.acks import Applied
from assignor.strategies.catalogue import RebalanceProtocol
from tests.support.followers.follow_hurts import Plans, drained
from tests.support.followers.follow_processes import Processes
from tests.support.followers.follow_repeats import Repeats, repeats
from tests.support.java.java_jar import JavaJar
from tests.support.java.java_members import EAGER
from tests.support.waiting import wait_until

_KINDS = ("java", "kafka-python", "aiokafka", "java")
"""Of the four members; the one that takes a member's place is of its kind."""
_PLUGIN = "tests.support.followers.plugin_process"
_KILLS_EACH = 2
_BOUNCES = 2
_PARTITIONS = 8
_WITHIN_S = 60.0


class Outcome(NamedTuple):
    """Of one run."""

    records: int
    lost: int
    second_owners: int
    repeats: Repeats
    kills: int
    replaced: int
    """Members that left, one at a time, for another in their place."""
    plans: int
    applied: int
    """Plans that all members were then assigned to the letter."""
    acknowledged: int
    """Plans that a member has acknowledged as applied."""


def run(bootstrap: str, name: str, folder: Path, *, jar: JavaJar, seed: int) -> Outcome:
    """Six kills, two of each kind, in random order, with a rolling bounce after each three; plans all the time."""
    with Processes(bootstrap, name, folder, partitions=_PARTITIONS) as processes:
        group = _Group(processes, jar, Random(seed))
        group.live()
        drained(processes)
        return Outcome(
            records=processes.produced * processes.partitions,
            lost=len(processes.missing()),
            second_owners=len(processes.overlaps()),
            repeats=repeats(processes.lines()),
            kills=processes.count("hurt"),
            replaced=group.replaced,
            plans=group.plans.published,
            applied=group.plans.applied,
            acknowledged=len({ack.epoch for ack in processes.all_acks() if isinstance(ack, Applied)}),
        )


class _Group:
    """The members by name, and the plans that they are given."""

    def __init__(self, processes: Processes, jar: JavaJar, random: Random) -> None:
        self._processes, self._random = processes, random
        self.plans = Plans(processes, random)
        self.replaced = 0
        of_kafka_python = {"client": "kafka-python", "protocol": RebalanceProtocol.EAGER}
        self._options: Mapping[str, Mapping[str, Any]] = {
            "java": {
                "module": "tests.support.java.java_process",
                "command": jar.command("lagwise.follow.Members"),
                "assignor": EAGER,
            },
            "kafka-python": {"module": _PLUGIN, "cluster": processes.cluster, **of_kafka_python},
            "aiokafka": {"module": _PLUGIN, "cluster": processes.cluster, "client": "aiokafka"},
        }
        self._kind_of: dict[str, str] = {}
        self._started = 0

    def live(self) -> None:
        """From the first member to the last plan."""
        for kind in _KINDS:
            self._start(kind)
        kills = sorted({*_KINDS}) * _KILLS_EACH
        self._random.shuffle(kills)
        for half in (kills[: len(kills) // _BOUNCES], kills[len(kills) // _BOUNCES :]):
            for kind in half:
                self.plans.go_on(len(_KINDS))
                who = self._random.choice([name for name in self._kind_of if self._kind_of[name] == kind])
                self._replace(who, lambda who: self._processes.send(who, signal.SIGKILL))
            self.plans.go_on(len(_KINDS))
            self._bounce()
        self.plans.go_on(len(_KINDS))

    def _bounce(self) -> None:
        for who in list(self._kind_of):
            self._replace(who, self._processes.leave)
            self.replaced += 1
            wait_until(
                lambda: self.plans.publish(len(_KINDS)),
                what="a group at rest in a bounce",
                within_s=_WITHIN_S,
            )

    def _replace(self, who: str, end: Callable[[str], None]) -> None:
        end(who)
        self._start(self._kind_of.pop(who))

    def _start(self, kind: str) -> None:
        who = f"{kind}-{self._started}"
        self._started += 1
        self._kind_of[who] = kind
        self._processes.start(who, **self._options[kind])
