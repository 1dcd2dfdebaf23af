"""Members in Java that copy a topic in transactions with their offsets, through plans, a stop and a kill (KIP-447)."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from assignor.protocol.acks import Applied
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_topics
from tests.support.followers.follow_processes import Processes
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import COOPERATIVE, EAGER
from tests.support.waiting import wait_until


def copied(bootstrap: str, topic: str) -> Counter[bytes]:
    """Where the records were that committed transactions have written, as `partition:offset`."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    seen = Counter[bytes]()
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while (message := reader.poll(10)) is not None and message.error() is None:
            seen[message.value() or b""] += 1
    finally:
        reader.close()
    return seen


def rotate(processes: Processes, *, after: int) -> int:
    """Publish a plan that moves every partition; its base's generation, once all three have applied it."""
    generation, _, base = processes.base(3, after=after)
    names = sorted(base)
    target = {name: base[names[number - 1]] for number, name in enumerate(names)}
    epoch = processes.publish(generation, base, target)
    processes.wait_for_acks(Applied, epoch, 3)
    return generation


def halt_in_transaction(processes: Processes, who: str) -> None:
    """Return when the process has stopped itself with records and offsets sent and not yet committed."""
    hurt = processes.count("hurt")
    processes.send(who, signal.SIGHUP)
    wait_until(lambda: processes.count("hurt") > hurt, what=f"{who} stopped before its commit")


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
def test_each_record_is_copied_once_through_plans_a_late_commit_and_a_kill(
    broker: EmbeddedBroker, tmp_path: Path, assignor: str, request: pytest.FixtureRequest
) -> None:
    name = f"java-transactions-{request.node.callspec.id}"
    copies = f"{name}-copies"
    create_topics(broker.bootstrap_servers, {copies: 1})
    options: dict[str, Any] = {
        "command": java_jar().command("lagwise.follow.Members"),
        "assignor": assignor,
        "copies_to": copies,
    }
    with Processes(
        broker.bootstrap_servers, name, tmp_path, module="tests.support.java.java_process"
    ) as processes:
        for who in "abc":
            processes.start(who, **options)
        generation = rotate(processes, after=-1)
        generation = rotate(processes, after=generation)

        # The others take over what "a" reads; its transaction is committed after all.
        halt_in_transaction(processes, "a")
        generation, _, _ = processes.base(2, after=generation)
        processes.send("a", signal.SIGCONT)
        generation = rotate(processes, after=generation)

        # A restart under the same transactional.id aborts what the killed one has left open.
        halt_in_transaction(processes, "b")
        processes.kill("b")
        processes.start("b", **options)
        rotate(processes, after=generation)

        processes.drain()
        records = processes.partitions * processes.produced
        wait_until(
            lambda: copied(broker.bootstrap_servers, copies).total() >= records, what="every record copied"
        )
        processes.finish()
        assert processes.failed() == []

    written = copied(broker.bootstrap_servers, copies)
    assert set(written.values()) == {1}
    assert len(written) == records
