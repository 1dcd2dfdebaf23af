"""`tables.catalog` on a Hive metastore: what one session enters, another one finds, as docs/sql.md has it.

Each session is a process of its own: within one, the catalog of the first would be that of the second.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.clock import now_ms
from pipeline.tables.owner.ownership import acquire
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.spark.metastore import Metastore

_NAME = "lags_of_tests"
_ENDED_WITHIN_S = 300


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with Metastore(tmp_path_factory.mktemp("metastore")) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "it's here"
    create_tables(str(place), retention_hours=1, storage_options={})
    return place


def session(*arguments: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.spark.catalog_sessions", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_ENDED_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_what_the_job_enters_is_found_by_name_by_another_session(metastore: Metastore, root: Path) -> None:
    acquire(Store(str(root), term=0), cluster="here", owner="this", now_ms=now_ms())

    entered = session("register", metastore.uri, str(root), _NAME)
    found = json.loads(session("ask", metastore.uri, _NAME).stdout)

    assert "the tables are registered in the catalog" in entered.stderr
    assert found["rows"] == {table.name: int(table.name == "planner_state") for table in TABLES}
    assert found["comments"]["kind"] == "accepted, refused, release, taken, applied or void"
