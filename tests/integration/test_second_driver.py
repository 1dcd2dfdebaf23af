"""Two drivers on the same tables: the newer one takes over, the older one stops, and no table mixes the two."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake.exceptions import TableNotFoundError

from pipeline.config_model import Config
from pipeline.embedded import EmbeddedBroker
from pipeline.errors import FencedError
from pipeline.schemas import TABLES
from pipeline.store import path_of
from tests.support.inject import commit_record, inject
from tests.support.job import RunningJob, read_table, running, write_config
from tests.support.waiting import wait_until

_REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("checkpoint", ["shared", "fresh"])
def test_newer_driver_takes_the_tables_and_the_older_one_stops(
    forged_broker: EmbeddedBroker, tmp_path: Path, checkpoint: str
) -> None:
    inject(forged_broker.bootstrap_servers, [commit_record("fenced", "no-topic", 0, 1)])
    root = tmp_path / "tables"
    config = write_config(tmp_path / "first.toml", forged_broker.bootstrap_servers, root)
    other = {"checkpoint": str(tmp_path / "fresh")} if checkpoint == "fresh" else {}
    write_config(tmp_path / "second.toml", forged_broker.bootstrap_servers, root, **other)
    first = RunningJob(config)
    first.start()
    try:
        first.wait_for_batches(2)
        (before,) = read_table(config, "planner_state")

        second = _run_once(tmp_path / "second.toml")
        first.join()
    finally:
        first.stop()

    (after,) = read_table(config, "planner_state")
    assert second.returncode == 0, second.stderr
    assert isinstance(first.failure, FencedError)
    assert after["owner"] != before["owner"]
    assert after["term"] == before["term"] + 1
    assert after["owner"] in str(first.failure)
    assert "Run one driver" in str(first.failure)
    for table in TABLES:
        terms = _terms(path_of(str(root), table.name))
        assert terms == sorted(terms)
    assert max(_terms(path_of(str(root), "partition_lag"))) == after["term"]


def test_command_of_a_fenced_driver_exits_with_1_and_says_who_took_over(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    inject(forged_broker.bootstrap_servers, [commit_record("fenced", "no-topic", 0, 1)])
    file = tmp_path / "lagwise.toml"
    config = write_config(file, forged_broker.bootstrap_servers, tmp_path / "tables")
    with subprocess.Popen(_command(file), stderr=subprocess.PIPE, text=True, cwd=_REPOSITORY) as older:
        try:
            wait_until(lambda: _has_written(config), what="a batch of the older driver", within_s=180)
            with running(config):
                _, said = older.communicate(timeout=120)
        finally:
            older.kill()

    (now,) = read_table(config, "planner_state")
    assert older.returncode == 1, said
    assert f"belong to driver {now['owner']} (term 2)" in said.splitlines()[-1]


def _has_written(config: Config) -> bool:
    try:
        return bool(read_table(config, "partition_lag"))
    except TableNotFoundError:
        return False


def _command(file: Path) -> list[str]:
    return [sys.executable, "-m", "pipeline.main", "--config", str(file)]


def _run_once(config_file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_command(config_file), "--once"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=_REPOSITORY,
    )


def _terms(table: str) -> list[int]:
    """The term under which each version of the table was written, oldest first."""
    versions = sorted(Path(table, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for version in versions for line in version.read_text().splitlines()]
    return [action["txn"]["version"] >> 32 for action in actions if "txn" in action]
