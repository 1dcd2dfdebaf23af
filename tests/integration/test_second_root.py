"""Commands of drivers with tables of their own, on one broker: who publishes, who is refused, and who is told by whom."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake.exceptions import TableNotFoundError

from pipeline.config.load import load
from pipeline.config.model import Config
from tests.support.brokers.broker import create_topics, produce, small_broker
from tests.support.job.job import EAGER_PLAN, read_table
from tests.support.waiting import wait_until

TOPIC, GROUP = "orders", "g"
_WITHIN_S = 240.0
pytestmark = pytest.mark.timeout(900)

_FOREIGN = re.compile(
    r"^-+\nException occurred during processing of request.*?^-+\n", re.DOTALL | re.MULTILINE
)
"""PySpark's words about a connection to its accumulators that is not its own: of a client of another test's broker, which
had that port before."""


class Driver:
    """`lagwise run` with tables of its own."""

    def __init__(self, folder: Path, bootstrap: str, *options: str, dry_run: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self.root = folder / "tables"
        file, self._log = folder / "lagwise.toml", folder / f"log{len(list(folder.glob('log*')))}"
        # Plans are renewed soon, so that the control topic is written soon.
        file.write_text(
            f'[kafka.properties]\n"bootstrap.servers" = "{bootstrap}"\n[tables]\nroot = "{self.root}"\n'
            f"[trigger]\ninterval_s = 1\n[plan]\ndry_run = {str(dry_run).lower()}\nvalid_for_s = 20\n{EAGER_PLAN}",
            encoding="utf-8",
        )
        self.config: Config = load(file)
        command = [sys.executable, "-c", "from pipeline.operate.cli.app import main; main()", "run"]
        with self._log.open("w") as log:
            self.process = subprocess.Popen([*command, "--config", str(file), *options], stderr=log)

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def name(self) -> str:
        """Host, process and start time, as the tables have it."""
        (row,) = read_table(self.config, "planner_state")
        return str(row["owner"])

    def status(self) -> int:
        """With which it ends by itself."""
        return self.process.wait(_WITHIN_S)

    def epochs(self) -> list[int]:
        """Of the plans that it has published, ascending."""
        try:
            rows: list[dict[str, Any]] = read_table(self.config, "recommendations")
        except TableNotFoundError:
            return []
        return sorted(row["epoch"] for row in rows if row["decision"] == "publish")

    def wait_for_plans(self, after: int = 0) -> None:
        """Return when it has published one with a higher epoch."""

        def has_published() -> bool:
            assert self.process.poll() is None, self.said[-3000:]
            return any(epoch > after for epoch in self.epochs())

        wait_until(has_published, what="a plan", within_s=_WITHIN_S)


@contextmanager
def uneven_group(bootstrap: str) -> Iterator[None]:
    """Two members that read nothing; the one with two partitions has all the lag."""
    create_topics(bootstrap, {TOPIC: 3})
    produce(bootstrap, TOPIC, {0: 50, 1: 50})
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "partition.assignment.strategy": "range",
        "enable.auto.commit": "false",
        "log_level": 0,
    }
    with closing(Consumer(properties)) as one, closing(Consumer(properties)) as other:
        members = (one, other)
        for member in members:
            member.subscribe([TOPIC])

        def are_assigned() -> bool:
            for member in members:
                member.poll(0.2)
            return sorted(len(member.assignment()) for member in members) == [1, 2]

        wait_until(are_assigned, what="both members", within_s=60)
        busy = max(members, key=lambda member: len(member.assignment()))
        busy.commit(offsets=[TopicPartition(TOPIC, number, 0) for number in (0, 1)], asynchronous=False)
        yield


def test_one_driver_publishes_for_a_cluster_and_each_other_one_is_told_whose_place_it_is(
    tmp_path: Path,
) -> None:
    begun: list[Driver] = []

    def started(*arguments: Any, **options: Any) -> Driver:
        begun.append(Driver(*arguments, **options))
        return begun[-1]

    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        with uneven_group(bootstrap):
            try:
                first = started(tmp_path / "first", bootstrap)
                first.wait_for_plans()

                refused = started(tmp_path / "second", bootstrap)
                assert refused.status() == 4, refused.said
                assert re.search(
                    rf"driver {re.escape(first.name)} publishes plans for cluster \S+, from the tables under "
                    rf"{re.escape(str(first.root))} of host \S+; this one does not start alongside it: .*--take-over",
                    refused.said.splitlines()[-1],
                ), refused.said
                assert refused.epochs() == []

                trial = started(tmp_path / "trial", bootstrap, "--once", dry_run=True)
                assert trial.status() == 0, trial.said
                # What follows the trial is published as before.
                first.wait_for_plans(after=max(first.epochs()))

                before = first.name
                taker = started(tmp_path / "second", bootstrap, "--take-over")
                assert first.status() == 4, first.said
                taker.wait_for_plans(after=max(first.epochs()))
                assert re.search(
                    rf"driver {re.escape(taker.name)} publishes for cluster \S+ now, from the tables under "
                    rf"{re.escape(str(taker.root))} of host \S+; this one stops: ",
                    first.said.splitlines()[-1],
                ), first.said
                assert first.name == before
                taker.process.terminate()
                assert taker.status() == 0, taker.said
            finally:
                for one in begun:
                    one.process.kill()
                    one.process.wait()
    assert not any("Traceback" in _FOREIGN.sub("", one.said) for one in begun)
