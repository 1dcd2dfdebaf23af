"""A group of confluent-kafka followers that goes over to KIP-848 and back, one member at a time, under a live job."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from assignor.protocol.acks import AnyAck, Applied, Follows, Refused, Release
from assignor.protocol.migration import POLICY, why_not
from assignor.protocol.ranges import parse_ranges
from pipeline.config.model import Config, ControlConfig, GroupRule
from pipeline.kafka import migration
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_port
from tests.integration.test_broker_assignor import settings
from tests.support.brokers.broker import admin_client, create_offsets_topic
from tests.support.brokers.commits import marks_of, set_back
from tests.support.followers.broker_group import STARTING
from tests.support.followers.follow_processes import Processes
from tests.support.java.broker_jar import OF_THE_DEMO, brokers_with_jar
from tests.support.job.here_job import HereJob
from tests.support.job.job import eager_plan, job_config
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

NAME = "migrates"
NEW: dict[str, Any] = {
    "new": "yes",
    "config": {
        "group.protocol": "consumer",
        "group.remote.assignor": "lagwise",
        # The broker sets both times.
        "session.timeout.ms": None,
        "heartbeat.interval.ms": None,
    },
}
Row = dict[str, Any]


@dataclass
class Scene:
    """The group, its broker, and the job that plans for it.

    Attributes:
        decisions: Of the job, oldest first.
    """

    broker: EmbeddedBroker
    processes: Processes
    job: HereJob
    admin: AdminClient
    decisions: list[Row] = field(default_factory=list)

    def decide(self) -> Row:
        """What the job decides about the group in one more batch."""
        self.job.batch()
        rows = [row for row in self.job.rows("plan_state") if row["group_id"] == self.processes.group]
        self.decisions += rows
        return rows[0] if rows else {}

    def wait_for_decision(self, holds: Callable[[Row], object], *, what: str) -> Row:
        wait_until(lambda: holds(self.decide()), what=what, within_s=180)
        return self.decisions[-1]

    def follow_a_plan(self) -> Row:
        """The next plan that the job makes and sees applied, as `recommendations` has it."""
        before = self.newest_epoch()
        done = self.wait_for_decision(lambda row: _is_applied(row, after=before), what="a plan applied")
        (plan,) = (row for row in self.published() if row["epoch"] == done["plan"]["epoch"])
        return plan

    def published(self) -> list[Row]:
        rows = self.job.rows("recommendations")
        return [
            row for row in rows if (row["group_id"], row["decision"]) == (self.processes.group, "publish")
        ]

    def newest_epoch(self) -> int:
        return max((row["epoch"] for row in self.published()), default=0)

    def set_policy(self, policy: str) -> None:
        """The broker is configured otherwise, and started again."""
        self.broker._properties[POLICY] = policy
        self.broker.restart()

    def replace(self, leaving: str, coming: str, kind: ConsumerGroupType, **options: Any) -> None:
        """One process leaves, another comes once the group is at rest, and the group is of that kind then."""
        others = {member.client_id for member in self.described().members} - {leaving}
        self.processes.leave(leaving)
        wait_until(lambda: self.is_whole(others), what=f"the group at rest without {leaving}")
        self.processes.start(coming, **options)
        wait_until(lambda: self.is_whole({*others, coming}), what=f"the group at rest with {coming}")
        assert self.described().type == kind

    def is_whole(self, clients: set[str]) -> bool:
        """Whether these members have all partitions, and none is on its way."""
        try:
            found = self.described()
        except KafkaException as error:
            if error.args[0].code() not in STARTING:
                raise
            return False
        names = {member.client_id for member in found.members}
        owned = sorted(place for places in _owned(found).values() for place in places)
        whole = owned == list(range(self.processes.partitions))
        return (found.state.name, names, whole) == ("STABLE", clients, True)

    def described(self) -> ConsumerGroupDescription:
        group = self.processes.group
        return self.admin.describe_consumer_groups([group])[group].result(10)

    def steps_of_hand_overs(self) -> list[AnyAck]:
        """What members have said that take up a plan within their generation."""
        return [ack for ack in self.processes.all_acks() if isinstance(ack, Follows | Release)]


def _is_applied(row: Row, *, after: int) -> bool:
    plan = row.get("plan") or {}
    return plan.get("status") == "applied" and plan["epoch"] > after and plan["moves_made"] > 0


def _owned(found: ConsumerGroupDescription) -> dict[str, set[int]]:
    return {
        member.member_id: {place.partition for place in member.assignment.topic_partitions}
        for member in found.members
    }


def _target(plan: Row) -> dict[str, set[int]]:
    return {
        member: {number for _, ranges in topics for number in parse_ranges(ranges, at_most=100)}
        for member, topics in plan["assignment"]
    }


@contextmanager
def broker_of(folder: Path) -> Iterator[EmbeddedBroker]:
    """With the brokers' assignor, for the group's plans, and without migration."""
    port = free_port()
    lagwise = {"bootstrap_servers": f"{HOST}:{port}", "control_topic": f"{NAME}-control"}
    properties: Mapping[str, str] = {**settings(**lagwise), POLICY: "disabled"}
    with (
        brokers_with_jar(OF_THE_DEMO),
        EmbeddedBroker(data_dir=folder / "broker", port=port, properties=properties) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        yield broker


def config_of(processes: Processes, folder: Path) -> Config:
    rule = GroupRule(pattern=processes.group, follow="broker", poke=True, dry_run=False)
    return job_config(
        processes.bootstrap,
        folder / "tables",
        plan=eager_plan(groups=(rule,)),
        control=ControlConfig(topic=processes.control, acks_topic=processes.acks),
    )


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Three followers, a broker that migrates no group, and the job."""
    # Or each of two changes of the policy takes half a minute to be noticed.
    monkeypatch.setitem(migration._AGAIN_AFTER_S, "known", 1.0)  # type: ignore[arg-type]  # a dict
    with broker_of(tmp_path) as broker, Processes(broker.bootstrap_servers, NAME, tmp_path) as processes:
        for letter in "abc":
            processes.start(letter)
        processes.base(3)
        job = HereJob(config_of(processes, tmp_path))
        yield Scene(broker, processes, job, admin_client(broker.bootstrap_servers))


def refuse_for_migration(scene: Scene) -> None:
    """Return when the members have refused a plan because groups are migrated, and the job knows."""
    refused = scene.wait_for_decision(
        lambda row: (row.get("plan") or {}).get("status") == "refused", what="a plan that is refused"
    )
    epoch = refused["plan"]["epoch"]
    scene.processes.wait_for_acks(Refused, epoch, 3)
    found = [ack for ack in scene.processes.all_acks() if isinstance(ack, Refused) and ack.epoch == epoch]
    assert {ack.why for ack in found} == {why_not("possible")}


def apply_by_hand_over(scene: Scene) -> None:
    """A plan of the job's is made within the generation of the three followers."""
    before = len(marks_of(scene.processes.bootstrap, scene.processes.group))
    plan = scene.follow_a_plan()
    scene.processes.wait_for_acks(Applied, plan["epoch"], 3)
    assert len(marks_of(scene.processes.bootstrap, scene.processes.group)) > before


def test_following_group_goes_over_to_kip848_and_back_by_bounces_and_follows_on_either_side(
    scene: Scene,
) -> None:
    processes = scene.processes
    apply_by_hand_over(scene)

    scene.set_policy("bidirectional")
    generation = max(row["base_generation"] for row in scene.published())
    refuse_for_migration(scene)
    # Whoever had given something away has again what Kafka assigns.
    processes.base(3, after=generation)
    steps = scene.steps_of_hand_overs()

    for letter in "abc":
        scene.replace(letter, f"{letter}-new", ConsumerGroupType.CONSUMER, **NEW)
        if letter != "c":
            assert "uses the classic protocol" in scene.decide()["reason"]
            assert scene.decisions[-1]["decision"] == "abstain"
    by_broker = scene.follow_a_plan()
    assert json.loads(by_broker["record"])["group_protocol"] == "consumer"
    assert _owned(scene.described()) == _target(by_broker)

    for letter in "abc":
        kind = ConsumerGroupType.CLASSIC if letter == "c" else ConsumerGroupType.CONSUMER
        scene.replace(f"{letter}-new", f"{letter}-back", kind)
        if letter != "c":
            assert "uses the classic protocol" in scene.decide()["reason"]
            assert scene.decisions[-1]["decision"] == "abstain"
    refuse_for_migration(scene)
    assert scene.steps_of_hand_overs() == steps

    scene.set_policy("disabled")
    apply_by_hand_over(scene)
    processes.finish()

    assert processes.missing() == []
    assert processes.overlaps() == []
    assert processes.strays() == []
    assert set_back(processes.bootstrap, processes.group) == []
    assert processes.failed() == []
    log.info("%s records a partition, %s processed twice", processes.produced, processes.repeated())
