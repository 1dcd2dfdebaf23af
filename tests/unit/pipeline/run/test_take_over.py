"""Taking the tables over, when that fails half way and is tried again."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.model import Config
from pipeline.errors import FencedError, TablesChangedError
from pipeline.run import job as job_module
from pipeline.run.job import Job
from pipeline.tables.owner import ownership
from pipeline.tables.reading import Tables
from pipeline.tables.store import Store
from pipeline.tables.upkeep.backup import back_up
from pipeline.tables.upkeep.creation import create_tables

FOUND: Any = SimpleNamespace(cluster_id="c")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(job_module, "upgrade", fails)
    create_tables(str(tmp_path), retention_hours=168, storage_options={})
    return str(tmp_path)


def job(root: str) -> Job:
    return Job(Config.model_validate({"tables": {"root": root}}))


def take_over(one: Job) -> None:
    nothing: Any = None
    one._take_over(nothing, FOUND, nothing)


def test_driver_is_not_fenced_by_its_own_take_over_that_failed_half_way(root: str) -> None:
    one = job(root)

    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            take_over(one)


def test_driver_that_came_after_half_a_take_over_is_left_its_tables(root: str) -> None:
    one, other = job(root), job(root)
    for each in (one, other):
        with pytest.raises(OSError, match="disk full"):
            take_over(each)
    taken = ownership.current(Store(root, term=0))

    with pytest.raises(FencedError):
        take_over(one)
    assert ownership.current(Store(root, term=0)) == taken


def test_driver_takes_tables_over_again_that_were_set_back_under_it(root: str, tmp_path: Path) -> None:
    one, copy = job(root), tmp_path / "copy"
    list(back_up(Tables(root), copy))
    with pytest.raises(OSError, match="disk full"):
        take_over(one)
    before = ownership.current(Store(root, term=0))

    shutil.rmtree(Path(root) / "planner_state")
    shutil.copytree(copy / "planner_state", Path(root) / "planner_state")
    # The job begins again from tables that have changed.
    with pytest.raises(TablesChangedError):
        take_over(one)
    with pytest.raises(OSError, match="disk full"):
        take_over(one)

    after = ownership.current(Store(root, term=0))
    assert before is not None
    assert after is not None
    assert after.term > before.term
