"""Secrets that the configuration refers to stand nowhere that Spark writes or shows.

That is its log of events, pages, plan and checkpoint, and the command lines of the host's processes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from pipeline.local.embedded.config import free_ports
from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session
from pipeline.source.datasource import LagwiseSource
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.inject import commit_record, inject
from tests.support.job.job import write_config
from tests.support.spark.event_log import event_log
from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
OF_ENV, OF_FILE, OF_STORAGE, OF_SPARK = SECRETS = (
    "hunter2-env",
    "hunter2-file",
    "hunter2-rows",
    "hunter2-conf",
)
_PROPERTIES = """"sasl.password" = "env:LAGWISE_TEST_SASL"
"ssl.key.password" = "file:{file}"
[tables.storage_options]
"AWS_SECRET_ACCESS_KEY" = "env:LAGWISE_TEST_STORAGE"
"""
_OF_SPARK = """
[spark]
"spark.hadoop.fs.s3a.secret.key" = "env:LAGWISE_TEST_SPARK"
"spark.executorEnv.KAFKA_PASSWORD" = "env:LAGWISE_TEST_SPARK"
"spark.driver.memory" = "env:LAGWISE_TEST_MEMORY"
"spark.ui.enabled" = "true"
"spark.ui.port" = "{port}"
"""
_PAGES = ("environment/", "jobs/", "stages/", "SQL/", "StreamingQuery/", "executors/")


class Written(NamedTuple):
    """What one driver has written and shown."""

    status: int
    lines: str
    events: str
    checkpoint: dict[str, str]
    """Its files by their names."""
    pages: dict[str, str]
    commands: list[str]
    """Command lines of all processes of the host while it ran."""


def _commands() -> Iterator[str]:
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end at any moment.
        with suppress(OSError):
            yield line.read_text(encoding="utf-8", errors="replace").replace("\0", " ")


def _fetched(address: str) -> str:
    with urlopen(address, timeout=30) as answer:  # noqa: S310 - of this machine
        return str(answer.read().decode())


def _pages(port: int) -> dict[str, str]:
    """Pages and JSON of Spark's UI."""
    root = f"http://127.0.0.1:{port}"
    (application,) = json.loads(_fetched(f"{root}/api/v1/applications"))
    api = f"{root}/api/v1/applications/{application['id']}"
    names = [f"{root}/{page}" for page in _PAGES]
    names += [f"{api}/{page}" for page in ("environment", "jobs", "sql?details=true&planDescription=true")]
    return {name: _fetched(name) for name in names}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    place = tmp_path_factory.mktemp("secrets")
    (place / "secret").write_text(f"{OF_FILE}\n", encoding="utf-8")
    (place / "events").mkdir()
    (port,) = free_ports(1)
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        inject(broker.bootstrap_servers, [commit_record("g", "t", 0, 1)])
        file = place / "lagwise.toml"
        write_config(file, broker.bootstrap_servers, place / "tables")
        head, tables = file.read_text(encoding="utf-8").split("[tables]\n")
        tables, rest = tables.split("[trigger]\n")
        kafka, storage = _PROPERTIES.format(file=place / "secret").split("[tables.storage_options]\n")
        text = f"{head}{kafka}[tables]\n{tables}[tables.storage_options]\n{storage}[trigger]\n{rest}"
        text += _OF_SPARK.format(port=port) + event_log(place / "events")
        file.write_text(text, encoding="utf-8")
        with (place / "lines").open("w", encoding="utf-8") as lines:
            process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.run.main", "--config", str(file)],
                cwd=place,
                env=os.environ
                | {"PYTHONPATH": str(REPOSITORY), "LAGWISE_TEST_SASL": OF_ENV}
                | {"LAGWISE_TEST_STORAGE": OF_STORAGE, "LAGWISE_TEST_SPARK": OF_SPARK}
                | {"LAGWISE_TEST_MEMORY": "1234m"},
                stdout=lines,
                stderr=lines,
            )
        said = place / "lines"
        try:
            wait_until(
                lambda: (
                    " batch batch_id=1 " in said.read_text(encoding="utf-8") or process.poll() is not None
                ),
                what="two batches",
                within_s=240,
            )
            assert process.poll() is None, said.read_text(encoding="utf-8")
            wait_until(lambda: _answers(port), what="Spark's page", within_s=60)
            pages = _pages(port)
            commands = list(_commands())
            process.terminate()
            status = process.wait(120)
        finally:
            process.kill()
    (events,) = (one for one in (place / "events").iterdir() if not one.name.startswith("."))
    checkpoint = place / "tables" / "_checkpoint"
    return Written(
        status=status,
        lines=said.read_text(encoding="utf-8"),
        events=events.read_text(encoding="utf-8"),
        checkpoint={
            str(one.relative_to(checkpoint)): one.read_text(encoding="utf-8", errors="replace")
            for one in checkpoint.rglob("*")
            if one.is_file()
        },
        pages=pages,
        commands=commands,
    )


def _answers(port: int) -> bool:
    try:
        return bool(_fetched(f"http://127.0.0.1:{port}/api/v1/applications"))
    except URLError:
        return False


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_event_log_has_plans_and_no_secret(written: Written) -> None:
    assert written.status == 0
    assert "physicalPlanDescription" in written.events
    assert secrets_in(written.events) == []


def test_checkpoint_has_offsets_and_no_secret(written: Written) -> None:
    assert any("made_from" in text for text in written.checkpoint.values())
    assert [name for name, text in written.checkpoint.items() if secrets_in(text)] == []


def test_pages_have_settings_and_no_secret(written: Written) -> None:
    # The property is there; its value is not.
    assert any("fs.s3a.secret.key" in text for text in written.pages.values())
    assert [name for name, text in written.pages.items() if secrets_in(text)] == []


def test_command_lines_have_what_starts_the_jvm_and_no_secret(written: Written) -> None:
    assert [line for line in written.commands if "-Xmx1234m" in line and "-XX:TieredStopAtLevel=1" in line]
    assert [line for line in written.commands if secrets_in(line)] == []


def test_lines_of_the_job_have_no_secret(written: Written) -> None:
    assert secrets_in(written.lines) == []


def test_plan_of_the_query_shows_no_secret_and_no_reference_under_its_name(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGWISE_TEST_SASL", OF_ENV)
    spark: SparkSession = build_session({}, jars=resolve_for_spark(PACKAGES))
    spark.dataSource.register(LagwiseSource)
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.sasl.password": "env:LAGWISE_TEST_SASL"}

    spark.readStream.format("lagwise").options(**options).load().explain(extended=True)

    shown = capfd.readouterr().out
    assert "lagwise" in shown
    assert secrets_in(shown) == []
