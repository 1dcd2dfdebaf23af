"""A poke on a real broker: it takes the plan at once, revokes only what the plan moves, and touches no other group."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AclOperation, ConsumerGroupDescription, ResourceType

from pipeline.config.model import Config, ControlConfig, GroupRule, KafkaConfig, TablesConfig, TriggerConfig
from pipeline.kafka import poke
from pipeline.kafka.poke import Outcome, Question
from pipeline.kafka.poke_member import CLIENT_ID
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.publish.pokes import _in_process
from tests.integration.test_broker_assignor import CONTROL, PARTITIONS, World, broker_of, moved, uneven, world
from tests.support.brokers.broker import admin_client, create_topics, produce
from tests.support.brokers.group_log import GroupLog
from tests.support.brokers.secured import Secured
from tests.support.followers.broker_group import ConfluentMember
from tests.support.followers.group_members import Members
from tests.support.java.broker_jar import OF_THE_DEMO
from tests.support.job.here_job import HereJob
from tests.support.job.job import eager_plan
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with broker_of(OF_THE_DEMO, tmp_path_factory.mktemp("poked")) as running:
        yield running


def question(servers: str | dict[str, str], group: str, *members: str, deadline_s: int = 15) -> Question:
    properties = {"bootstrap.servers": servers} if isinstance(servers, str) else servers
    return Question(
        properties=properties | {"log_level": "0"}, group_id=group, members=members, deadline_s=deadline_s
    )


def described(bootstrap: str, group: str) -> ConsumerGroupDescription | None:
    admin = admin_client(bootstrap)
    try:
        return admin.describe_consumer_groups([group])[group].result(10)
    except KafkaException:
        return None


def topics(bootstrap: str) -> set[str]:
    return set(admin_client(bootstrap).list_topics(timeout=10).topics)


@contextmanager
def table_of(one: World) -> Iterator[Any]:
    """The group's current row."""
    with closing(GroupLog(one.group.bootstrap)) as log:

        def row() -> dict[str, Any]:
            log.read_on()
            rows = log.groups.table.to_pylist(maps_as_pydicts="strict")
            return next(row for row in rows if row["group_id"] == one.group.name)

        yield row


def test_plan_is_taken_at_once_for_one_group_epoch_and_only_what_moves_is_revoked(
    broker: EmbeddedBroker,
) -> None:
    with world(broker, "taken") as one, table_of(one) as row:
        base = one.two()
        target, before, given_up = uneven(base), row(), len(one.given_up())
        existing = topics(one.group.bootstrap)
        one.publish(base, target, epoch=1)

        outcome = _in_process(question(one.group.bootstrap, "taken", *target))

        assert outcome == Outcome()
        wait_until(lambda: one.group.owned() == target, what="the target of the plan")
        assert sorted(one.given_up()[given_up:]) == sorted(moved(base, target))
        wait_until(lambda: row()["state"] == "Stable", what="the group at rest in the table")
        after = row()
        assert after["generation"] - before["generation"] == 1
        assert {member["member_id"] for member in after["members"]} == set(target)
        assert topics(one.group.bootstrap) == existing


def test_member_is_in_no_table_while_it_is_there_nor_when_it_is_killed(broker: EmbeddedBroker) -> None:
    with world(broker, "killed") as one, table_of(one) as row:
        base = one.two()
        before = row()
        _killed_while_in(question(one.group.bootstrap, "killed", *base))

        beside = row()
        assert (beside["members"], beside["state"]) == (before["members"], "Stable")
        assert one.group.owned().items() >= base.items()
        # A plan fits exactly its members, so the next one waits until the broker removes the dead one.
        target = uneven(base)
        one.publish(base, target, epoch=1)
        outcome = _in_process(question(one.group.bootstrap, "killed", *target))
        assert outcome is not None
        assert "cut off" in (outcome.why_not or "")
        wait_until(lambda: one.group.owned().items() >= target.items(), what="the target of the plan")


def _killed_while_in(asked: Question) -> None:
    """Kill a poke whose member is in the group: it runs for a moment, and stands still while the group is looked at."""
    admin = admin_client(asked.properties["bootstrap.servers"])
    process = _poking(asked)

    def is_in() -> bool:
        nonlocal process
        if process.poll() is not None:  # It came and went between two looks.
            process = _poking(asked)
        process.send_signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(signal.SIGSTOP)
        found = admin.describe_consumer_groups([asked.group_id])[asked.group_id].result(10)
        return any(member.client_id == CLIENT_ID for member in found.members)

    try:
        wait_until(is_in, what="the member in the group", every_s=0)
    finally:
        process.kill()
        process.wait(10)


def _poking(asked: Question) -> subprocess.Popen[str]:
    process = subprocess.Popen(poke.command(), stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(poke.encode(asked))
    process.stdin.close()
    return process


def test_group_that_is_gone_is_not_made(broker: EmbeddedBroker) -> None:
    outcome = _in_process(question(broker.bootstrap_servers, "gone", "a"))

    assert outcome == Outcome(why_not="the group is gone")
    found = described(broker.bootstrap_servers, "gone")
    assert found is None or found.state.name == "DEAD"
    listed = admin_client(broker.bootstrap_servers).list_consumer_groups().result(10)
    assert "gone" not in {one.group_id for one in listed.valid}


def test_group_whose_members_have_left_is_not_joined(broker: EmbeddedBroker) -> None:
    with Members() as members:
        members.add(ConfluentMember(broker.bootstrap_servers, "left", ["t"]))
        wait_until(
            lambda: (found := described(broker.bootstrap_servers, "left")) and found.members, what="a member"
        )
    outcome = _in_process(question(broker.bootstrap_servers, "left", "a"))

    assert outcome == Outcome(why_not="the group has no member any more")


def test_group_that_is_classic_again_is_not_converted(broker: EmbeddedBroker) -> None:
    classic = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "classic", "log_level": 0})
    classic.subscribe(["t"])
    with closing(classic):
        wait_until(lambda: classic.poll(0.1) is None and classic.assignment(), what="an assignment")
        member_id = classic.memberid() or ""

        outcome = _in_process(question(broker.bootstrap_servers, "classic", member_id))

        assert outcome == Outcome(why_not="the group no longer uses group.protocol=consumer")
        found = described(broker.bootstrap_servers, "classic")
        assert found is not None
        assert (found.type.name, len(found.members)) == ("CLASSIC", 1)


def test_read_on_the_group_is_the_only_further_right_that_it_takes(secured: Secured) -> None:
    create_topics(secured.open_servers, {"of-the-poked": 2})
    secured.add_user("poker")
    # lagwise has this right: without it a coordinator does not describe a group with such topics.
    secured.allow("poker", (AclOperation.DESCRIBE, ResourceType.TOPIC, "of-the-poked"))
    with Members() as members:
        member = members.add(
            ConfluentMember(secured.open_servers, "poked", ["of-the-poked"], group_remote_assignor="uniform")
        )
        wait_until(lambda: len(member.now.owned) == 2, what="an assignment")
        asked = question(secured.settings("poker"), "poked", member.now.member_id)

        refused = _in_process(asked)
        assert refused is not None
        assert "deploying-security.md" in (refused.error or "")

        secured.allow("poker", (AclOperation.READ, ResourceType.GROUP, "poked"))
        wait_until(lambda: _in_process(asked) == Outcome(), what="the right to take effect")
        assert len(member.now.owned) == 2


def test_job_plans_publishes_pokes_and_sees_the_plan_applied(broker: EmbeddedBroker, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    produce(bootstrap, "t", {0: 900, 1: 700})
    config = Config(
        kafka=KafkaConfig(properties={"bootstrap.servers": bootstrap, "log_level": "0"}),
        tables=TablesConfig(root=str(tmp_path)),
        trigger=TriggerConfig(interval_s=1),
        control=ControlConfig(topic=CONTROL),
        plan=eager_plan(groups=(GroupRule(pattern="of-the-job", follow="broker", poke=True, dry_run=False),)),
    )
    with world(broker, "of-the-job") as one:
        base = one.two()
        job = HereJob(config)

        def newest() -> dict[str, Any]:
            job.batch()
            rows = [row for row in job.rows("plan_state") if row["group_id"] == "of-the-job"]
            return rows[0] if rows else {}

        wait_until(lambda: newest().get("decision") == "publish", what="a plan")
        wait_until(lambda: (newest().get("plan") or {}).get("status") == "applied", what="the plan applied")

        owned = one.group.owned()
        assert owned != base
        assert len({place for places in owned.values() for place in places}) == PARTITIONS
        seen = [
            member["client_id"]
            for table in ("consumer_groups", "group_history")
            for row in job.rows(table)
            for member in row["members"] or ()
        ]
        assert seen
        assert CLIENT_ID not in seen
        history = sorted(job.rows("group_history"), key=lambda row: row["updated_at"])
        whys = [row["why"] for row in history if row["group_id"] == "of-the-job"]
        assert whys == ["first_seen", "moved_by_plan"]
