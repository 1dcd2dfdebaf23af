"""How long a group takes from the publication of a plan until its last member has applied it.

Members and broker share the machine. The time of a member is that of its acknowledgement `applied`, by the clock
that published as well. Small groups: three members, six partitions, which all change hands, under traffic for
confluent-kafka, whose members are processes; those of the other clients are threads (in Java, of one process). Large group: fifty members, a
thousand partitions, in threads.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from assignor.clients.kafka_python import COOPERATIVE
from assignor.protocol.acks import AnyAck, Applied
from tests.benchmarks.timing import p
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.followers.follow_crowd import Crowd, all_moved, few_moved
from tests.support.followers.follow_processes import Processes
from tests.support.followers.group_members import Members, ThreadedMember
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.java import java_members
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import JavaHost, java_member
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_MEMBERS = 3
_PLANS = 40
_PLANS_QUICK = 4
_CROWD, _CROWD_PARTITIONS = 50, 1000
_PLANS_OF_THE_CROWD = 10
_HEADER = ["client", "members", "partitions", "moved", "plans", "p50 ms", "p95 ms", "slowest ms"]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Milliseconds by client: p50, p95 and the slowest of all plans."""
    plans = _PLANS_QUICK if quick else _PLANS
    rows = []
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        for name, run in _SMALL.items():
            took_ms = run(broker.bootstrap_servers, plans)
            rows.append([name, _MEMBERS, 6, "all", *_figures(took_ms)])
            say(f"{name}: {rows[-1]}")
        for row in _crowd(broker.bootstrap_servers, _PLANS_QUICK if quick else _PLANS_OF_THE_CROWD):
            rows.append(row)
            say(f"crowd: {row}")
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _figures(took_ms: list[float]) -> list[int]:
    return [len(took_ms), round(p(took_ms, 50)), round(p(took_ms, 95)), round(max(took_ms))]


def _rotated(base: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted(base)
    return {name: base[names[number - 1]] for number, name in enumerate(names)}


def _applied_ms(said: Iterable[AnyAck], epoch: int) -> dict[str, int]:
    """When each member has said first that it has applied the plan."""
    at_ms: dict[str, int] = {}
    for ack in said:
        if isinstance(ack, Applied) and ack.epoch == epoch:
            at_ms.setdefault(ack.member, ack.at_ms)
    return at_ms


def _confluent(bootstrap: str, plans: int) -> list[float]:
    took_ms = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Processes(bootstrap, "bench-follow", Path(folder)) as processes,
    ):
        for who in "abc":
            processes.start(who)
        generation, _, base = processes.base(_MEMBERS)
        places = base
        for _ in range(plans):
            places = _rotated(places)
            published_ms = time.time() * 1000
            epoch = processes.publish(generation, base, places)
            processes.wait_for_acks(Applied, epoch, _MEMBERS)
            took_ms.append(max(_applied_ms(processes.all_acks(), epoch).values()) - published_ms)
        processes.finish()
    return took_ms


def _plugin(name: str, make: Callable[[PluginSetup], ThreadedMember]) -> Callable[[str, int], list[float]]:
    def run(bootstrap: str, plans: int) -> list[float]:
        setup = PluginSetup.made(bootstrap, f"bench-{name}")
        with Members() as members:
            for _ in range(_MEMBERS):
                members.add(make(setup))
            base = members.settled(setup.places)
            return [_apply(setup, members, base, epoch) for epoch in range(1, plans + 1)]

    return run


def _java(assignor: str) -> Callable[[str, int], list[float]]:
    def run(bootstrap: str, plans: int) -> list[float]:
        with JavaHost(java_jar()) as host:
            name = assignor.rpartition(".")[2]
            return _plugin(name, lambda setup: java_member(host, setup, assignor))(bootstrap, plans)

    return run


def _apply(setup: PluginSetup, members: Members, base: Mapping[str, Any], epoch: int) -> float:
    target = base
    for _ in range(epoch):
        target = _rotated(target)
    now = members.settled(setup.places)
    published_ms = time.time() * 1000
    setup.publish(setup.plan(now, target, generation=members.generation, epoch=epoch))
    wait_until(lambda: len(_applied_ms(setup.said(Applied), epoch)) == _MEMBERS, what=f"plan {epoch} applied")
    return max(_applied_ms(setup.said(Applied), epoch).values()) - published_ms


def _crowd(bootstrap: str, plans: int) -> Iterable[list[Any]]:
    with Crowd(bootstrap, "bench-crowd", members=_CROWD, partitions=_CROWD_PARTITIONS) as crowd:
        base = crowd.base()
        generation = crowd.generation
        for moved, target in (("5 %", few_moved(base, percent=5)), ("all", all_moved(base))):
            took_ms = []
            for _ in range(plans):
                took_ms.append(1000 * crowd.apply(base, target))
                crowd.apply(base, base)
            assert (crowd.generation, crowd.losses) == (generation, 0)
            yield ["confluent-kafka", _CROWD, _CROWD_PARTITIONS, moved, *_figures(took_ms)]


_SMALL: Mapping[str, Callable[[str, int], list[float]]] = {
    "confluent-kafka": _confluent,
    "kafka-python, eager": _plugin("eager", lambda setup: setup.follower()),
    "kafka-python, cooperative": _plugin("coop", lambda setup: setup.follower(protocol=COOPERATIVE)),
    "aiokafka": _plugin("aiokafka", lambda setup: setup.aiokafka_follower()),
    "Java, eager": _java(java_members.EAGER),
    "Java, cooperative": _java(java_members.COOPERATIVE),
}
