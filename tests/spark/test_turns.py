"""More groups than fit between two batches: those most in need first, the others in the batches that follow."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.arrow_stream import unpacked
from pipeline.config.model import Config, PlanConfig, TriggerConfig
from pipeline.planning.step import PlanSettings
from pipeline.run.batch.plans import evaluation
from pipeline.run.driver import Driver
from pipeline.run.tasks.deciding import READS, DecidingTask, share
from pipeline.source.summary import Summary
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import batch_of, idle_driver, later, stamp_of
from tests.support.job.frames import NOW_MS, arrow, decoded_rows

AGES_S = {"calm": 0.0, "late": 50.0, "later": 70.0, "latest": 900.0}
ONE_A_BATCH = Config(trigger=TriggerConfig(interval_s=1), plan=PlanConfig(interval_s=60))


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver that has time for one group in each batch."""
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    rows = [{"group_id": name, "lag": 5, "lag_seconds": age_s} for name, age_s in AGES_S.items()]
    store.write("partition_lag", arrow("partition_lag", *rows), stamp_of())
    times = iter(range(1000))
    monkeypatch.setattr(evaluation, "_GROUPS_AT_A_TIME", 1)
    monkeypatch.setattr(evaluation, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(evaluation, "decide_all", decided_here)
    publisher = SimpleNamespace(unavailable=lambda _: None)
    return idle_driver(spark=spark, store=store, config=ONE_A_BATCH, publisher=publisher, replay=later())


def decided_here(driver: Driver, settings: PlanSettings, *, only: tuple[str, ...]) -> pa.Table:
    """What a task of Spark would decide."""
    store = driver.services.store
    task = DecidingTask(storage_options={}, reads=store.files(READS), settings=settings, attempts=4)
    (row,) = task([share(list(only), driver.memory)])
    return unpacked(row["decided"][0])


def decided(driver: Driver, number: int, **fields: Any) -> list[str]:
    """The groups that a batch decides about; batches begin every ten seconds."""
    at_ms = NOW_MS + number * 10_000
    stamp = stamp_of(batch_id=10 + number, at_ms=at_ms)
    batch = batch_of(driver, stamp=stamp, **fields)
    evaluation.make_plans(batch)
    rows = driver.services.store.rows("plan_state", ["group_id", "batch_id"])
    return [row["group_id"] for row in rows if row["batch_id"] == 10 + number]


def test_groups_have_their_turns_by_need_and_the_next_evaluation_waits_for_the_last_of_them(
    driver: Driver,
) -> None:
    turns = [decided(driver, number) for number in (0, 1, 2, 70)]

    assert turns == [["latest"], ["later"], ["late"], ["calm"]]
    assert driver.memory.waiting == ()
    assert decided(driver, 71) == ["latest"]


def test_group_that_an_operator_wants_a_plan_for_does_not_wait_for_its_turn(driver: Driver) -> None:
    decided(driver, 0)
    order = {"row_kind": "orders", "group_id": "calm", "position": 1}

    assert decided(driver, 1, decoded=decoded_rows(order), summary=Summary(counts={"orders": 1})) == ["calm"]
    assert [decided(driver, 2), decided(driver, 3), decided(driver, 4)] == [["later"], ["late"], []]


def test_all_groups_are_decided_about_in_one_batch_when_there_is_time(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_GROUPS_AT_A_TIME", 3)
    monkeypatch.setattr(evaluation, "time", SimpleNamespace(monotonic=lambda: 0))

    assert sorted(decided(driver, 0)) == sorted(AGES_S)
    assert decided(driver, 1) == []


def test_state_of_a_group_that_is_gone_from_the_table_is_forgotten(driver: Driver) -> None:
    driver.memory.states = {"latest": "known", "gone": "known once"}

    decided(driver, 0)

    assert driver.memory.states == {"latest": "known"}
