"""Maintenance has the time between a batch and the next one, and no more."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from pipeline.clock import now_ms
from pipeline.config.model import Config, SourceConfig, TablesConfig
from pipeline.kafka.positions import Intake
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.upkeep import maintain_tables
from pipeline.run.driver import Driver
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from pipeline.tables.upkeep.maintenance import Kept
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, arrow, at

LAST_OF_ROUND = 59


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return idle_driver(
        config=Config(tables=TablesConfig(root=str(tmp_path))), store=Store(str(tmp_path), term=1)
    )


def spare_s(batch: Settled, monkeypatch: pytest.MonkeyPatch) -> float:
    """How much time maintenance is given beside the batch."""
    given: list[float] = []
    kind = type(batch.driver.maintenance)
    monkeypatch.setattr(kind, "work", lambda _self, _kept, *, spare_s, **_: given.append(spare_s))
    maintain_tables(batch)
    return given[0]


def test_maintenance_has_the_rest_of_the_interval(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(driver, stamp=stamp_of(at_ms=now_ms() - 10_000))

    assert spare_s(batch, monkeypatch) == pytest.approx(20, abs=2)


def test_batch_that_came_late_leaves_less(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    begun_ms = now_ms() - 40_000
    spare_s(batch_of(driver, stamp=stamp_of(at_ms=begun_ms)), monkeypatch)
    late = batch_of(driver, stamp=stamp_of(at_ms=begun_ms + 38_000))

    # The one after it is due 60 s after the first.
    assert spare_s(late, monkeypatch) == pytest.approx(20, abs=2)


@pytest.mark.parametrize(
    ("ahead_days", "expires"),
    [
        *(([0], True), ([0.9], True), ([-0.9], True), ([51], False), ([-51], False), ([], False)),
        *(([0.9, -51], True), ([-51, 51], False)),
    ],
)
def test_nothing_expires_by_a_clock_that_no_commit_vouches_for(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, ahead_days: list[float], expires: bool
) -> None:
    commits = [
        {"partition": number, "commit_timestamp": at(-86_400 * days)}
        for number, days in enumerate(ahead_days)
    ]
    driver.services.store.write("partition_lag", arrow("partition_lag", *commits), stamp_of(at_ms=NOW_MS))
    begun: list[bool] = []
    kind = type(driver.maintenance)
    monkeypatch.setattr(kind, "begin", lambda _self, *, expires: begun.append(expires))

    maintain_tables(batch_of(driver, stamp=stamp_of(batch_id=LAST_OF_ROUND, at_ms=NOW_MS)))

    assert begun == [expires]


def test_while_records_are_left_the_next_batch_is_due_at_once(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settled, "has_read", True)
    batch = batch_of(driver, stamp=stamp_of(at_ms=now_ms()), intake=Intake(left=7))

    assert spare_s(batch, monkeypatch) == 0.0


@pytest.mark.parametrize(("offsets", "is_dated"), [("topic", True), ("admin", False)])
def test_commits_that_coordinators_report_vouch_for_no_clock(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, offsets: Literal["topic", "admin"], is_dated: bool
) -> None:
    given: list[Kept] = []
    monkeypatch.setattr(type(driver.maintenance), "work", lambda _self, kept, **_: given.append(kept))
    config = driver.services.config.model_copy(update={"source": SourceConfig(offsets=offsets)})

    maintain_tables(
        batch_of(replace(driver, services=replace(driver.services, config=config)), stamp=stamp_of())
    )

    assert [kept.is_dated for kept in given] == [is_dated]


def test_once_works_off_the_whole_round(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(driver.monitor, "does", begun.append)
    once = replace(driver, services=replace(driver.services, is_once=True))

    # Cron starts a process for each batch, and the next round is due 60 runs later.
    maintain_tables(batch_of(once, stamp=stamp_of(batch_id=LAST_OF_ROUND, at_ms=now_ms())))

    compacted = [f"compact {one.name}" for one in TABLES if not one.is_latest]
    assert begun == [
        f"maintain_tables ({doing})" for doing in (*compacted, *(f"clean {one.name}" for one in TABLES))
    ]


def test_driver_that_hangs_in_maintenance_says_so(driver: Driver) -> None:
    said: list[Any] = []
    tell = driver.monitor.does

    def told(doing: str) -> None:
        tell(doing)
        said.append(driver.monitor.report().doing)

    driver.monitor.does = told  # type: ignore[method-assign]
    maintain_tables(batch_of(driver, stamp=stamp_of(batch_id=LAST_OF_ROUND, at_ms=now_ms())))

    assert said[0] == "maintain_tables (compact lag_history)"
    driver.monitor.step_ended("maintain_tables")
    assert driver.monitor.report().doing is None
