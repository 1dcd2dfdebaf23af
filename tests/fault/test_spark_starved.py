"""A job whose executors fit into no worker reports it within a minute, and ends when told to."""

import time
from pathlib import Path

import pytest

from tests.support.brokers.broker import create_offsets_topic, create_topics, small_broker
from tests.support.brokers.inject import inject, many_commits
from tests.support.spark.spark_cluster import SparkCluster
from tests.support.spark.submitted_driver import SubmittedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(900)


def test_job_that_gets_no_executors_says_so_and_hears_that_it_is_to_end(tmp_path: Path) -> None:
    with small_broker() as broker, SparkCluster(tmp_path / "spark", workers=1) as cluster:
        bootstrap = broker.bootstrap_servers
        create_topics(bootstrap, {"t": 1})
        create_offsets_topic(bootstrap)
        # Enough records that tasks read them.
        inject(bootstrap, many_commits(groups=60, topics=10, partitions=100, rounds=1))
        config = tmp_path / "lagwise.toml"
        config.write_text(
            f'[kafka.properties]\n"bootstrap.servers" = "{bootstrap}"\n'
            f'[tables]\nroot = "{tmp_path / "tables"}"\nshared = true\n',
            encoding="utf-8",
        )
        page = f"--conf spark.master.ui.port={cluster.page_port}"
        memory = {"SUBMIT_ARGS": f"--master {cluster.url} {page} --driver-memory 1g --executor-memory 8g"}
        driver = SubmittedDriver(tmp_path / "driver", config, master=cluster.url, variables=memory)
        try:

            def is_told() -> bool:
                assert driver.status is None, driver.said
                return "Spark gives the job no executors" in driver.said

            wait_until(is_told, what="a warning", within_s=300)
            assert "8g of memory" in driver.said
            assert "127.0.0.1: 1024 of 1024 MiB and 1 of 1 cores free" in driver.said
            begun_s = time.monotonic()
            status = driver.end()
        finally:
            driver.kill()
    assert status == 0, driver.said
    assert time.monotonic() - begun_s < 120
