"""How long a KIP-848 group takes from the publication of a plan until its members have applied it, with a poke.

Plain consumers with Kafka's own heartbeat interval of five seconds, brokers of the demo's version: confluent-kafka and
Java, six partitions, one broker, where each plan moves two partitions or four; and the same two clients and franz-go, nine
partitions, three brokers, with records flowing, where each plan moves up to four at random. The poke is the process that the
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
from tests.support.followers.three_broker_group import (
    CLIENTS,
    ThreeBrokerGroup,
    three_brokers,
    three_clients,
)
from tests.support.java.broker_jar import OF_THE_DEMO, brokers_with_jar
from tests.support.java.java_apps import Owned
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_PLANS, _PLANS_QUICK = 20, 2
_HEARTBEAT = {"group.consumer.heartbeat.interval.ms": "5000", "group.consumer.session.timeout.ms": "45000"}
_HEADER = [
    "brokers",
    "clients",
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
    rows = [[1, 2, *row], [3, len(CLIENTS), *_on_three_brokers(_PLANS_QUICK if quick else _PLANS, say)]]
    return {"tables": [{"header": _HEADER, "rows": rows}]}


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
    return _row(applied_s, poked_s, _epoch(log) - begun, n_moved, n_revoked)


def _on_three_brokers(plans: int, say: Say) -> list[Any]:
    with tempfile.TemporaryDirectory() as name:
        heartbeat = {key.replace(".", "_"): value for key, value in _HEARTBEAT.items()}
        with (
            three_brokers(Path(name), **heartbeat) as proxied,
            three_clients(proxied, "measured", Path(name), seed=29) as one,
            closing(GroupLog(one.cluster.internal_servers)) as log,
        ):
            wait_until(lambda: one.reads(one.coordinator()), what="plans read by the coordinator")
            return _measured_on_three(one, log, plans, say)


def _measured_on_three(one: ThreeBrokerGroup, log: GroupLog, plans: int, say: Say) -> list[Any]:
    applied_s: list[float] = []
    poked_s: list[float] = []
    n_moved = n_revoked = 0
    begun = _epoch(log)
    for number in range(1, plans + 1):
        plan = one.publish(one.settled())
        outcome = one.poke(plan)
        assert outcome == Outcome(), outcome
        poked_s.append(time.monotonic() - plan.published_s)
        assert one.is_applied(plan, within_s=60)
        applied_s.append(one.last_change_s() - plan.published_s)
        n_moved += len(plan.moved)
        n_revoked += len(one.given_up(plan.published_s))
        say(f"plan {number}: applied in {applied_s[-1]:.1f} s, poked in {poked_s[-1]:.1f} s")
    return _row(applied_s, poked_s, _epoch(log) - begun, n_moved, n_revoked)


def _row(applied_s: list[float], poked_s: list[float], epochs: int, moved: int, revoked: int) -> list[Any]:
    figures = (p(applied_s, 50), p(applied_s, 95), max(applied_s), p(poked_s, 50), p(poked_s, 95))
    return [
        len(applied_s),
        *(round(figure, 1) for figure in figures),
        epochs / len(applied_s),
        moved,
        revoked,
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
