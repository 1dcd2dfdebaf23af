"""A batch that is late says so, and which step it was."""

import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.kafka.positions import Intake, Position, Span
from pipeline.run import query as query_module
from pipeline.run.batch.steps import Done
from pipeline.run.driver import Driver
from pipeline.run.query import Report, RunBatch
from pipeline.source.summary import Reached, Summary
from tests.support.job.batches import batch_of, done, idle_driver, runner_of

LATE = "a batch took longer than trigger.interval_s"


def quick(driver: Driver, _batch_id: int, _frame: Any) -> Done:
    return done(batch_of(driver))


def slow(driver: Driver, _batch_id: int, _frame: Any) -> Done:
    time.sleep(0.01)
    return done(batch_of(driver), seconds_by_step={"begin": 0.001, "store_lag": 0.01})


def full(driver: Driver, _batch_id: int, _frame: Any) -> Done:
    span = Span(topic="t", partition=0, start=0, end=5)
    read = Summary(reached={span.key: Reached(Position(5), None)})
    return done(batch_of(driver, intake=Intake(spans=(span,), left=7), summary=read))


def warned(
    caplog: pytest.LogCaptureFixture,
    run_batch: RunBatch,
    *,
    interval_s: float,
    batches: int = 1,
    is_once: bool = False,
) -> list[Any]:
    runner = runner_of(run_batch, driver=idle_driver(is_once=is_once), interval_s=interval_s)
    nothing: Any = None
    with caplog.at_level(logging.WARNING):
        for batch_id in range(batches):
            runner(nothing, batch_id)
    return [record for record in caplog.records if record.message.startswith(LATE)]


def test_late_batch_names_its_slowest_step_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = warned(caplog, slow, interval_s=0.005, batches=3)

    assert record.slowest_step == "store_lag"
    assert record.interval_s == 0.005


@pytest.mark.parametrize(("run_batch", "interval_s"), [(slow, 60), (full, 0)])
def test_batch_in_time_or_one_of_many_that_catch_up_is_not_late(
    run_batch: RunBatch, interval_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert warned(caplog, run_batch, interval_s=interval_s) == []


@pytest.mark.parametrize(("run_batch", "is_complete"), [(quick, True), (full, False)], ids=["all", "a piece"])
def test_reading_is_complete_once_the_last_piece_of_each_topic_is_read(
    run_batch: RunBatch, is_complete: bool
) -> None:
    reports: list[Report] = []
    nothing: Any = None

    runner_of(run_batch, on_batch=reports.append)(nothing, 0)

    assert [one.is_complete for one in reports] == [is_complete]


def test_batch_of_a_single_run_is_never_late(caplog: pytest.LogCaptureFixture) -> None:
    assert warned(caplog, slow, interval_s=0.005, is_once=True) == []


@pytest.mark.parametrize(
    ("batches", "silent_s", "is_said"),
    [(0, 50, False), (0, 70, True), (1, 10, False), (1, 20, True)],
    ids=["starting", "never began", "a moment", "stopped"],
)
def test_stream_without_batches_is_told_but_not_while_it_starts(
    batches: int,
    silent_s: int,
    is_said: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {"s": 1000.0}
    monkeypatch.setattr(query_module.time, "monotonic", lambda: now["s"])
    runner = runner_of(quick, interval_s=1)
    nothing: Any = None
    for batch_id in range(batches):
        runner(nothing, batch_id)

    def wait(seconds: float) -> bool:
        now["s"] += seconds
        if now["s"] >= 1000 + silent_s:
            runner.stop.set()
        return False

    query: Any = SimpleNamespace(awaitTermination=wait, isActive=False, stop=lambda: None)
    executors: Any = SimpleNamespace(look=lambda: None)
    query_module.watch(query, runner, executors, interval_s=1)

    assert ("no batch has started" in caplog.text) == is_said


@pytest.mark.parametrize(
    ("silent_s", "is_at_work", "killed"), [(90, False, 0), (110, False, 1), (110, True, 0), (210, False, 2)]
)
def test_process_of_the_source_is_killed_when_no_batch_begins_for_longer_than_it_may_live(
    silent_s: int, is_at_work: bool, killed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, kills = {"s": 1000.0}, list[float]()
    monkeypatch.setattr(query_module.time, "monotonic", lambda: now["s"])
    monkeypatch.setattr(query_module, "kill_source", lambda _spark, silent_s: kills.append(silent_s))
    runner = runner_of(quick, interval_s=1)
    if is_at_work:
        runner.between_batches.acquire()

    def wait(seconds: float) -> bool:
        now["s"] += seconds
        if now["s"] >= 1000 + silent_s:
            runner.stop.set()
        return False

    def is_starved() -> bool:
        # It is waited for by now.
        runner.between_batches.release()
        return False

    query: Any = SimpleNamespace(awaitTermination=wait, isActive=False, stop=lambda: None)
    executors: Any = SimpleNamespace(look=lambda: None, is_starved=is_starved)
    query_module.watch(query, runner, executors, interval_s=1, hung_s=100)

    assert [round(one) for one in kills] == [101, 202][:killed]
