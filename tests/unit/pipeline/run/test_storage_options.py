"""Secrets for an object store, which the configuration refers to, reach whatever opens the tables."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.clock import now_ms
from pipeline.config.model import Config, TablesConfig
from pipeline.kafka.cluster import Cluster
from pipeline.run import job as job_module
from pipeline.run.batch.upkeep import maintain_tables
from pipeline.run.driver import Driver
from pipeline.run.job import Job
from pipeline.tables.schemas import TABLES
from tests.support.job.batches import KnownConfigs, batch_of, deaf_session, stamp_of

RESOLVED = {"AWS_SECRET_ACCESS_KEY": "hunter2"}


class Opened(list[tuple[str, dict[str, str] | None]]):
    """Tables that deltalake was asked to open, by their names, and with which options."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    seen, init = Opened(), DeltaTable.__init__

    def recording(self: DeltaTable, table_uri: str, *args: Any, **more: Any) -> None:
        seen.append((Path(table_uri).name, more.get("storage_options")))
        init(self, table_uri, *args, **more)

    monkeypatch.setattr(DeltaTable, "__init__", recording)
    return seen


def taken_over(config: Config, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver of a job that has made the tables; it meets neither Spark nor Kafka."""
    job = Job(config)
    monkeypatch.setattr(job_module, "_jars", tuple)

    def stopping(*_: Any, **__: Any) -> Any:
        job.stop.set()
        return deaf_session()

    monkeypatch.setattr(job_module, "build_session", stopping)
    monkeypatch.setattr(job_module, "connect", lambda *_: None)
    job.run()
    configs: Any = KnownConfigs()
    nothing: Any = None
    return job._take_over(nothing, Cluster(cluster_id="c", topics=(), configs=configs), nothing)


def test_driver_and_upkeep_open_every_table_with_secrets_resolved(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_KEY", "hunter2")
    options = {"AWS_SECRET_ACCESS_KEY": "env:MY_KEY"}
    tables = TablesConfig(root=str(tmp_path), storage_options=options, upkeep_every_batches=1)
    names = {table.name for table in TABLES}

    driver = taken_over(Config(tables=tables), monkeypatch)
    by_driver = opened.copy()
    opened.clear()
    # Two seconds are not always enough for a round.
    for number in range(2 * len(TABLES)):
        maintain_tables(batch_of(driver, stamp=stamp_of(batch_id=number, at_ms=now_ms())))

    for found in (by_driver, opened):
        assert {name for name, _ in found} == names
        assert [options for _, options in found if options != RESOLVED] == []
    assert "maintenance failed" not in caplog.messages
