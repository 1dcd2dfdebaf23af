"""Two drivers on the same tables: the newer one takes over, the older one stops, and no table mixes the two."""

import json
import re
import subprocess
import sys
from pathlib import Path

from deltalake.exceptions import TableNotFoundError

from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import path_of
from tests.support.brokers.inject import commit_record, inject
from tests.support.job.job import read_table, running, write_config
from tests.support.waiting import wait_until


def test_newer_driver_takes_the_tables_and_the_command_of_the_older_one_says_so(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """On one checkpoint; `make fault` has a newer driver with a fresh one."""
    # The newer query may meet what the older one writes at its end, and begin once more.
    assert_newer_takes_over(forged_broker.bootstrap_servers, tmp_path, most_terms=3)


def assert_newer_takes_over(
    bootstrap: str, folder: Path, *, most_terms: int, **checkpoint_of_newer: str
) -> None:
    """Two drivers on the same tables, one after the other."""
    root = folder / "tables"
    inject(bootstrap, [commit_record("fenced", "no-topic", 0, 1)])
    config = write_config(folder / "first.toml", bootstrap, root)
    newer = write_config(folder / "second.toml", bootstrap, root, **checkpoint_of_newer)
    with subprocess.Popen(_command(folder / "first.toml"), stderr=subprocess.PIPE, text=True) as older:
        try:
            wait_until(lambda: _has_written(config), what="a batch of the older driver", within_s=180)
            (before,) = read_table(config, "planner_state")
            with running(newer) as job:
                _, said = older.communicate(timeout=120)
                job.wait_for_batches()
        finally:
            older.kill()

    (after,) = read_table(config, "planner_state")
    assert older.returncode == 4, said
    last = said.splitlines()[-1]
    holder = re.search(r"belong to driver (\S+) \(term (\d+)\) now.* run one driver", last)
    assert holder
    assert holder[1] != before["owner"]
    assert before["term"] < int(holder[2]) <= after["term"]
    # Without that of the creation.
    assert 2 <= len(set(_terms(path_of(str(root), "planner_state"))) - {0}) <= most_terms
    for table in TABLES:
        terms = _terms(path_of(str(root), table.name))
        assert terms == sorted(terms)
    assert max(_terms(path_of(str(root), "partition_lag"))) == after["term"]


def _has_written(config: Config) -> bool:
    try:
        return bool(read_table(config, "partition_lag"))
    except TableNotFoundError:
        return False


def _command(file: Path) -> list[str]:
    return [sys.executable, "-m", "pipeline.run.main", "--config", str(file)]


def _terms(table: str) -> list[int]:
    """The term under which each version of the table was written, oldest first."""
    versions = sorted(Path(table, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for version in versions for line in version.read_text().splitlines()]
    return [action["txn"]["version"] >> 32 for action in actions if "txn" in action]
