"""Groups of kafka-python and aiokafka whose control and acks topics fail in mid-run: consuming goes on, and so does following."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from assignor.clients.aiokafka import background as of_aiokafka
from assignor.clients.kafka_python import background as of_kafka_python
from assignor.protocol.acks import Applied
from tests.support.brokers.flow import Flow
from tests.support.brokers.troubled import KINDS, Troubled, troubled_broker
from tests.support.followers.group_members import Members, PartitionKey
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    with troubled_broker(tmp_path_factory.mktemp("troubled")) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (of_kafka_python, of_aiokafka):
        monkeypatch.setattr(module, "PROBE_EVERY_S", 0.5)
        monkeypatch.setattr(module, "RETRY_AT_MOST_S", 1.0)
    monkeypatch.setattr(of_kafka_python, "_PROBE_WITHIN_MS", 1000)
    monkeypatch.setattr(of_aiokafka, "_ANSWER_WITHIN_S", 1.0)
    for settings in ("_READER", "_WRITER"):
        shorter = {**getattr(of_kafka_python, settings), "bootstrap_timeout_ms": 1000}
        monkeypatch.setattr(of_kafka_python, settings, shorter)


def told(caplog: pytest.LogCaptureFixture, text: str) -> int:
    """How often our own log has a message that begins so."""
    ours = [record for record in caplog.records if record.name.startswith("assignor")]
    return sum(record.getMessage().startswith(text) for record in ours)


def apply(
    setup: PluginSetup, members: Members, target: dict[str, frozenset[PartitionKey]], *, epoch: int
) -> None:
    setup.publish(setup.plan(members.owned(), target, generation=members.generation, epoch=epoch))
    wait_until(lambda: members.owned() == target, what=f"the target of plan {epoch}")


def read_through(flow: Flow, members: Members) -> None:
    """Return when all was read that has been produced until now, and something after it."""
    wanted = PARTITIONS * (RECORDS + flow.produced + 5)
    wait_until(lambda: records_read(members) >= wanted, what=f"{wanted} records")


def records_read(members: Members) -> int:
    return len(set().union(*(member.read for member in [*members.all, *members.gone])))


@pytest.mark.parametrize("kind", KINDS)
def test_group_consumes_through_trouble_and_follows_again(
    troubled: Troubled, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    setup = PluginSetup.made(troubled.bootstrap, f"{kind}-topics")
    troubled.allow(setup)
    by_proxy: dict[str, Any] = {"connection": troubled.connection}
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    with caplog.at_level(logging.INFO, logger="assignor"), Members() as members:
        flow.start()
        members.add(setup.follower(**by_proxy))
        members.add(setup.aiokafka_follower(**by_proxy))
        planned = all_to_one(members.settled(setup.places))
        apply(setup, members, planned, epoch=1)

        troubled.begin(kind, setup)
        lost = "a control record of this group" if kind == "damaged" else "the control topic cannot be read"
        wait_until(lambda: told(caplog, lost) == 2, what="a word of each")
        read_through(flow, members)
        assert members.owned() == planned
        # The plan is for other members now, so they rebalance by themselves, and have something to acknowledge.
        members.add(setup.follower(**by_proxy))
        members.settled(setup.places, after=members.generation)
        read_through(flow, members)

        if kind != "damaged":
            wait_until(lambda: told(caplog, lost) == 3, what="a word of the one that came last")
        troubled.end(kind, setup)
        if kind != "damaged":
            wait_until(lambda: told(caplog, "resolved: the control") == 3, what="all well")
        apply(setup, members, all_to_one(members.owned()), epoch=2)
        # A rebalance that comes just after it applies the plan again: a member may acknowledge it in two generations.
        wait_until(
            lambda: {ack.member for ack in setup.said(Applied) if ack.epoch == 2} == set(members.owned()),
            what="the plan applied by each member",
        )
        flow.end()
        wait_until(
            lambda: records_read(members) == PARTITIONS * (RECORDS + flow.produced), what="every record"
        )

    assert told(caplog, lost) == 3
    assert told(caplog, "an acknowledgement cannot be sent") <= 3
