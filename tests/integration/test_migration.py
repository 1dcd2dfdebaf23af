"""A broker that migrates groups to KIP-848, as Kafka ships it: plans say so, and followers of confluent-kafka refuse them."""

import json
from pathlib import Path

from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from assignor.protocol.acks import Follows
from assignor.protocol.migration import why_not
from pipeline.config.model import ControlConfig
from pipeline.kafka.migration import MigrationWatch
from pipeline.operate.cli.app import app
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.followers.follow_processes import Processes
from tests.support.job.job import eager_plan, job_config, running


def test_plan_is_refused_on_a_broker_with_kafkas_own_default_and_the_command_says_why(tmp_path: Path) -> None:
    with small_broker(group_consumer_migration_policy="bidirectional") as broker:
        create_offsets_topic(broker.bootstrap_servers)
        tables = tmp_path / "tables"
        with Processes(broker.bootstrap_servers, "refusal", tmp_path) as processes:
            for who in "ab":
                processes.start(who)
            processes.base(2)
            config = job_config(
                broker.bootstrap_servers,
                tables,
                plan=eager_plan(dry_run=False),
                control=ControlConfig(topic=processes.control, acks_topic=processes.acks),
            )
            with running(config) as job:
                job.wait(
                    lambda: "held back by migration" in str(job.last_decision(processes.group).get("reason")),
                    what="no plan after the one that was refused",
                )
                sent = [row for row in job.rows("recommendations") if row["decision"] == "publish"]
            processes.finish()
            said = processes.all_acks()

        records = [json.loads(row["record"]) for row in sent]
        assert {record["migration"] for record in records} == {"possible"}
        assert not any(isinstance(ack, Follows) for ack in said)
        words = ("recommendations", "--tables", str(tables), "--group", processes.group, "--last", "1")
        assert (
            f"{max(record['epoch'] for record in records)} refused" in CliRunner().invoke(app, words).stdout
        )
        detail = CliRunner().invoke(app, (*words, "--detail")).stdout
        assert str(why_not("possible")) in " ".join(detail.split())


def test_policy_of_a_broker_is_the_one_that_it_was_started_with() -> None:
    with small_broker(group_consumer_migration_policy="Disabled") as broker:
        assert MigrationWatch(AdminClient({"bootstrap.servers": broker.bootstrap_servers}))() == "disabled"
