"""`source.offsets = "admin"` in a running job: Spark's tasks ask the coordinators, batch after batch and once.

What the rows hold is compared in `test_admin_source_truth.py`.
"""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pipeline.config.model import Config, SourceConfig
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.run.batch.steps import run
from tests.support.brokers.broker import create_topics, produce
from tests.support.job.job import RunningJob, job_config, running

TOPIC, GROUP, SILENT = "admin-job", "admin-job-group", "admin-job-quiet"


@pytest.fixture(scope="module")
def bootstrap(broker: EmbeddedBroker) -> str:
    create_topics(broker.bootstrap_servers, {TOPIC: 2})
    produce(broker.bootstrap_servers, TOPIC, {0: 30, 1: 30})
    commit(broker.bootstrap_servers, GROUP, 10)
    commit(broker.bootstrap_servers, SILENT, 30)
    return broker.bootstrap_servers


def commit(bootstrap: str, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def config_of(bootstrap: str, root: Path) -> Config:
    source = SourceConfig(
        offsets="admin", request_timeout_s=5, groups_include=("admin-job-.*",), group_max_age_s=5
    )
    return job_config(bootstrap, root, source=source)


def lags(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    columns = ("group_id", "topic", "partition", "committed_offset", "lag", "provisional")
    return {tuple(row[name] for name in columns) for row in rows}


def test_running_job_follows_the_commits_of_groups_and_goes_on_after_a_restart(
    bootstrap: str, tmp_path: Path
) -> None:
    config = config_of(bootstrap, tmp_path)
    quiet = (SILENT, TOPIC, 0, 30, 0, False)

    with running(config, run_batch=run) as job:
        job.wait(
            lambda: lags(job.rows("partition_lag")) == {(GROUP, TOPIC, 0, 10, 20, False), quiet},
            what="the first commits",
        )
        commit(bootstrap, GROUP, 15)
        job.wait(
            lambda: lags(job.rows("partition_lag")) == {(GROUP, TOPIC, 0, 15, 15, False), quiet},
            what="the next commit",
        )
    commit(bootstrap, GROUP, 20)
    with running(config, run_batch=run) as job:
        job.wait(
            lambda: lags(job.rows("partition_lag")) == {(GROUP, TOPIC, 0, 20, 10, False), quiet},
            what="the commit of the meantime",
        )


def test_once_reads_everything_and_ends_complete(bootstrap: str, tmp_path: Path) -> None:
    commit(bootstrap, GROUP, 25)
    job = RunningJob(config_of(bootstrap, tmp_path), once=True, run_batch=run)

    job.run_out()

    assert lags(job.rows("partition_lag")) == {
        (GROUP, TOPIC, 0, 25, 5, False),
        (SILENT, TOPIC, 0, 30, 0, False),
    }
