"""The disk of the tables is full for a while, then read-only: the driver lives, says so, and goes on by itself."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake.exceptions import TableNotFoundError

from pipeline.clock import now_ms
from pipeline.config.model import Config
from pipeline.operate.health import look
from pipeline.tables.reading import Tables
from tests.support.brokers.broker import create_topics, produce, small_broker
from tests.support.brokers.kafka_tools import describe_offsets
from tests.support.job.job import read_table, write_config
from tests.support.waiting import wait_until

TOPIC, END = "stored", 50
# The issue asks for a minute; what there is to see is there after a few triggers.
AWAY_S = float(os.environ.get("LAGWISE_TEST_STORAGE_AWAY_S", "20"))
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system, which needs root"),
]


class Disk:
    """A file system of its own, 300 MB large."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take all that is free."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 2**20)
            except OSError:
                return

    def make_room(self) -> None:
        self._filler.unlink()

    def remount(self, how: str) -> None:
        # A file that is open for writing keeps it busy.
        command = ["mount", "-o", f"remount,{how}", str(self.folder)]
        wait_until(
            lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0, what=how
        )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(folder)], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Driver:
    """The command of an operator, and what it says."""

    def __init__(self, config_file: Path, log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "pipeline.run.main", "--config", str(config_file)]
        with log.open("w") as file:
            self.process = subprocess.Popen(command, stderr=file)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait(self, condition: Callable[[], bool], *, what: str, within_s: float = 180) -> None:
        def holds() -> bool:
            assert self.process.poll() is None, self.said[-3000:]
            return condition()

        wait_until(holds, what=what, within_s=within_s)


def commit(bootstrap: str, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def in_tables(config: Config) -> dict[str, int]:
    try:
        rows = read_table(config, "partition_lag")
    except TableNotFoundError:
        return {}
    return {row["group_id"]: row["committed_offset"] for row in rows}


def by_kafka(bootstrap: str) -> dict[str, int | None]:
    return {row.group_id: row.committed_offset for row in describe_offsets(bootstrap)}


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "read-only"])
def test_driver_waits_for_its_disk_and_loses_nothing(disk: Disk, tmp_path: Path, *, is_full: bool) -> None:
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_topics(bootstrap, {TOPIC: 1})
        produce(bootstrap, TOPIC, {0: END})
        for number in range(5):
            commit(bootstrap, f"g{number}", number)
        config = write_config(tmp_path / "lagwise.toml", bootstrap, disk.folder / "tables")
        driver = Driver(tmp_path / "lagwise.toml", tmp_path / "log")
        try:
            driver.wait(lambda: in_tables(config) == by_kafka(bootstrap), what="all commits")
            if is_full:
                disk.fill()
            else:
                disk.remount("ro")
            begun_s = time.monotonic()
            driver.wait(lambda: "the tables cannot be written" in driver.said, what="a warning")
            for number in range(3, 8):
                commit(bootstrap, f"g{number}", 20 + number)
            driver.wait(lambda: time.monotonic() - begun_s > AWAY_S, what="the outage")
            health = look(Tables(config.tables.root), config, now_ms=now_ms())
            assert health.state == "critical", health
            if is_full:
                disk.make_room()
            else:
                disk.remount("rw")

            driver.wait(lambda: in_tables(config) == by_kafka(bootstrap), what="all commits again")
            driver.wait(
                lambda: look(Tables(config.tables.root), config, now_ms=now_ms()).state == "ok", what="health"
            )
        finally:
            driver.process.terminate()
            status = driver.process.wait(120)
    assert status == 0
    assert "Traceback" not in driver.said
    assert "panicked" not in driver.said
    assert "\tat " not in driver.said
