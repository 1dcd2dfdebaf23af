"""A broker that is not there yet, goes away and comes back: the job waits and goes on, with nobody's help.

Away for 20 s where it may be hours: longer than `source.request_timeout_s` and than four trigger intervals, after
which the clients have given up on it and the job has said so. Nothing changes in it after that.
"""

import time
from contextlib import closing
from pathlib import Path

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import free_port
from tests.support.brokers.broker import SMALL, create_topics, produce
from tests.support.brokers.inject import commit_record, inject
from tests.support.job.job import RunningJob, health_of, job_config

AWAY_S = 20.0
ORDERS = "orders"


def test_job_outlives_its_broker(tmp_path: Path) -> None:
    port = free_port()
    job = RunningJob(job_config(f"127.0.0.1:{port}", tmp_path / "tables"), rests=False)
    with closing(EmbeddedBroker(data_dir=tmp_path / "broker", port=port, properties=SMALL)) as broker:
        job.start()
        try:
            _assert_waits_for_a_broker_that_is_down_at_start(job, broker)
            _assert_keeps_what_it_knew_while_the_broker_is_away(job, broker)
            _assert_goes_on_when_it_is_back(job, broker)
        finally:
            job.stop()
    assert job.failure is None


def _assert_waits_for_a_broker_that_is_down_at_start(job: RunningJob, broker: EmbeddedBroker) -> None:
    job.wait(lambda: _said(job, "Kafka is unavailable"), what="a line about the broker")
    assert broker.bootstrap_servers in _said(job, "Kafka is unavailable")[0]
    assert job.reports == []

    broker.start()
    # A new cluster has no offsets topic either: the job has it made.
    job.wait(lambda: job.reports, what="the first batch")
    create_topics(broker.bootstrap_servers, {ORDERS: 1})
    produce(broker.bootstrap_servers, ORDERS, {0: 10})
    inject(broker.bootstrap_servers, [commit_record("g", ORDERS, 0, 4)])

    job.wait(lambda: _lag(job) == 6, what="the first lag")


def _assert_keeps_what_it_knew_while_the_broker_is_away(job: RunningJob, broker: EmbeddedBroker) -> None:
    said_before = len(job.messages)
    broker.kill()
    back_at = time.monotonic() + AWAY_S

    job.wait(lambda: time.monotonic() > back_at, what="the end of the outage")

    assert any(broker.bootstrap_servers in line for line in job.messages[said_before:])
    health = health_of(job)
    assert (health.is_live, health.is_ready) == (True, False)
    assert health.reasons[0].startswith("Kafka is unavailable: ")
    assert _lag(job) == 6
    (row,) = job.rows("partition_lag")
    assert row["status"] != "DELETED"


def _assert_goes_on_when_it_is_back(job: RunningJob, broker: EmbeddedBroker) -> None:
    broker.start()
    produce(broker.bootstrap_servers, ORDERS, {0: 5})
    inject(broker.bootstrap_servers, [commit_record("g", ORDERS, 0, 8)])

    job.wait(lambda: _lag(job) == 7, what="the lag after the outage", within_s=150)

    job.wait_for_batches()
    assert job.reports[-1].is_complete
    job.wait(lambda: health_of(job).state == "ok", what="a heartbeat that says so")


def _said(job: RunningJob, words: str) -> list[str]:
    return [line for line in job.messages if words in line]


def _lag(job: RunningJob) -> int | None:
    rows = job.lags("g")
    return rows["orders", 0]["lag"] if rows else None
