"""`--once`: everything that is in the offsets topic, one plan, an end; by the command and by spark-submit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.config.model import Config, StartConfig
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import OFFSETS_PARTITIONS, create_topics, produce
from tests.support.brokers.inject import commit_record, inject, open_transaction
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, job_config, read_table, write_config

REPOSITORY = Path(__file__).parents[2]
COMMANDS = {
    "command": [sys.executable, "-m", "pipeline.run.main"],
    "spark-submit": [str(REPOSITORY / "deploy" / "submit.sh")],
}
GROUPS = 12
END = 30
SECRET = "mark-7f3a-of-a-secret"  # noqa: S105 - it opens nothing
_OF_KAFKA = """
[kafka.properties]
"ssl.key.password" = "env:LAGWISE_TEST_SECRET"
"debug" = "conf"
"""
_OF_SPARK = """
[spark]
"spark.hadoop.fs.s3a.secret.key" = "env:LAGWISE_TEST_SECRET"
"""


class Ended(NamedTuple):
    """A run, and what it left."""

    done: subprocess.CompletedProcess[str]
    config: Config
    names: set[str]
    """Of the groups made for it."""


@pytest.fixture(scope="module", params=COMMANDS)
def ended(
    forged_broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Ended:
    """A run over groups with lag, whose configuration names secrets for Kafka's clients and for Spark."""
    topic, file = f"once-{request.param}", tmp_path_factory.mktemp("once") / "lagwise.toml"
    names = {f"{topic}-{number}" for number in range(GROUPS)}
    create_topics(forged_broker.bootstrap_servers, {topic: 2})
    produce(forged_broker.bootstrap_servers, topic, {0: END, 1: END})
    for number, name in enumerate(sorted(names)):
        busy = member("busy", topic, assigned={topic: (0, 1)})
        inject(
            forged_broker.bootstrap_servers,
            [group_record(name, busy, member("idle", topic)), commit_record(name, topic, 0, number)],
        )
    config = write_config(file, forged_broker.bootstrap_servers, file.parent / "tables")
    text = file.read_text(encoding="utf-8").replace("[kafka.properties]", _OF_KAFKA) + _OF_SPARK
    file.write_text(text, encoding="utf-8")
    return Ended(_run(COMMANDS[request.param], file), config, names)


def test_once_reads_everything_plans_once_and_ends(ended: Ended) -> None:
    assert ended.done.returncode == 0, ended.done.stderr
    rows = [row for row in read_table(ended.config, "partition_lag") if row["group_id"] in ended.names]
    assert {(row["group_id"], row["partition"]) for row in rows} == {
        (n, p) for n in ended.names for p in (0, 1)
    }
    assert {row["lag"] for row in rows if row["partition"] == 0} == {END - n for n in range(GROUPS)}
    assert not any(row["provisional"] for row in rows)
    plans = [row for row in read_table(ended.config, "recommendations") if row["group_id"] in ended.names]
    assert [row["decision"] for row in plans] == ["dry_run"] * GROUPS
    assert len({row["group_id"] for row in plans}) == GROUPS > OFFSETS_PARTITIONS


def test_secret_is_in_no_line_table_or_checkpoint(ended: Ended) -> None:
    assert ended.done.returncode == 0, ended.done.stderr
    assert SECRET not in ended.done.stdout + ended.done.stderr
    files = [file for file in Path(ended.config.tables.root).rglob("*") if file.is_file()]
    assert any("_checkpoint" in file.parts for file in files)
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


def test_once_that_cannot_read_everything_in_time_says_why_and_plans_nothing(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    bootstrap = forged_broker.bootstrap_servers
    create_topics(bootstrap, {"once-late": 1})
    job = RunningJob(job_config(bootstrap, tmp_path, start=StartConfig(deadline_s=5)), once=True)

    with open_transaction(bootstrap, "never-ends", {("once-late", 0): 1}):
        job.start()
        job.join(120)

    assert job.failure is None
    assert job.is_incomplete
    assert any("an open transaction holds back" in line for line in job.messages)
    assert job.rows("plan_state") == job.rows("recommendations") == []


def _run(command: list[str], config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, "--config", str(config), "--once"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=config.parent,
        env=os.environ
        | {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable,
            "LAGWISE_TEST_SECRET": SECRET,
        },
    )
