"""How long a KIP-848 group takes from the publication of a plan until its members have applied it, with a poke.

Two plain consumers, one of confluent-kafka and one in Java, with Kafka's own heartbeat interval of five seconds, six
partitions, one broker of the demo's version; each plan moves two partitions or four. The poke is the process that the
job starts, begun when the plan is on the control topic. Times are the members': when the last of them was given what
the plan gives it. What was revoked is counted at the members, too.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.kafka.poke import Outcome, Question
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_port
from pipeline.publish.pokes import _in_process
from tests.benchmarks.timing import p
from tests.integration.test_broker_assignor import CONTROL, PARTITIONS, World, moved, settings, uneven, world
from tests.support.brokers.broker import create_offsets_topic, create_topics
from tests.support.brokers.group_log import GroupLog
from tests.support.java.broker_jar import OF_THE_DEMO, brokers_with_jar
from tests.support.java.java_apps import Owned
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_PLANS, _PLANS_QUICK = 20, 2
_HEARTBEAT = {"group.consumer.heartbeat.interval.ms": "5000", "group.consumer.session.timeout.ms": "45000"}
_HEADER = [
    "plans",
    "applied s: p50",
    "p95",
    "slowest",
    "poke s: p50",
    "p95",
    "epochs of a poke",
    "moved",
    "revoked",
]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds, group epochs, and partitions moved and revoked over all plans."""
    port = free_port()
    properties = settings(bootstrap_servers=f"{HOST}:{port}") | _HEARTBEAT
    with (
        tempfile.TemporaryDirectory() as folder,
        brokers_with_jar(OF_THE_DEMO),
        EmbeddedBroker(data_dir=Path(folder) / "broker", port=port, properties=properties) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        create_topics(broker.bootstrap_servers, {"t": PARTITIONS, CONTROL: 1})
        with world(broker) as one, closing(GroupLog(broker.bootstrap_servers)) as log:
            row = _measured(one, log, _PLANS_QUICK if quick else _PLANS, say)
    return {"tables": [{"header": _HEADER, "rows": [row]}]}


def _measured(one: World, log: GroupLog, plans: int, say: Say) -> list[Any]:
    base = one.two()
    applied_s: list[float] = []
    poked_s: list[float] = []
    n_moved = n_revoked = 0
    begun = _epoch(log)
    for epoch in range(1, plans + 1):
        target, given_up = uneven(base), len(one.given_up())
        one.publish(base, target, epoch)
        published_s = time.monotonic()
        outcome = _in_process(_question(one, target))
        assert outcome == Outcome(), outcome
        poked_s.append(time.monotonic() - published_s)
        wait_until(
            lambda wanted=target: _owned(one) == wanted, what="the target at the members", every_s=0.02
        )
        applied_s.append(time.monotonic() - published_s)
        wait_until(lambda wanted=target: one.group.owned() == wanted, what="the group at rest")
        n_moved += len(moved(base, target))
        n_revoked += len(one.given_up()) - given_up
        say(f"plan {epoch}: applied in {applied_s[-1]:.1f} s, poked in {poked_s[-1]:.1f} s")
        base = target
    figures = (p(applied_s, 50), p(applied_s, 95), max(applied_s), p(poked_s, 50), p(poked_s, 95))
    return [
        plans,
        *(round(one_of, 1) for one_of in figures),
        (_epoch(log) - begun) / plans,
        n_moved,
        n_revoked,
    ]


def _question(one: World, target: Owned) -> Question:
    return Question(
        properties={"bootstrap.servers": one.group.bootstrap, "log_level": "0"},
        group_id=one.group.name,
        members=tuple(target),
        deadline_s=15,
    )


def _owned(one: World) -> Owned:
    """The partitions that the members report."""
    return {member.now.member_id: member.now.owned for member in one.members.all}


def _epoch(log: GroupLog) -> int:
    log.read_on()
    (row,) = log.groups.table.to_pylist(maps_as_pydicts="strict")
    return int(row["generation"])
