"""What the driver says of itself: to its heartbeat, and as metrics."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.kafka.positions import End, Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.opening import Outage
from pipeline.run.batch.steps import Outcome, Steps
from pipeline.run.driver import Driver
from pipeline.run.health import monitor as monitor_module
from pipeline.run.health.listener import SparkListener
from pipeline.run.health.monitor import BatchFigures, Monitor
from pipeline.run.health.text import metrics
from pipeline.run.query import Report, RunBatch
from tests.support.job.batches import batch_of, done, idle_driver, runner_of, stamp_of
from tests.support.operate.prometheus_text import parse

NOW_MS = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(monitor_module, "now_ms", own)
    return own


def figures(**changes: Any) -> BatchFigures:
    plain = {
        "stamp": stamp_of(at_ms=NOW_MS),
        "seconds": 0.3,
        "seconds_by_step": {"begin": 0.1, "store_lag": 0.2},
        "counts": {"commit": 5, "bad": 2},
        "published": 1,
        "unanswered": 0,
        "offsets_left": 7,
        "is_settled": True,
    }
    return BatchFigures(**{**plain, **changes})


def test_starting_driver_lives_and_is_not_ready(clock: Clock) -> None:
    own = Monitor(interval_s=30, deadline_s=600)
    clock.ms += 599_000
    health = own.health()
    clock.ms += 2_000

    assert (health.is_live, health.is_ready) == (True, False)
    assert not own.health().is_live


def test_driver_whose_storage_is_slow_but_answers_is_not_stuck(clock: Clock) -> None:
    own = Monitor(interval_s=5)
    own.batch_ended(figures())
    for _ in range(10):
        clock.ms += 59_000
        own.storage_answered()
    assert own.health().is_live

    clock.ms += 61_000

    assert not own.health().is_live


def test_running_driver_is_stuck_when_no_step_ends_for_ten_triggers(clock: Clock) -> None:
    own = Monitor(interval_s=30)
    own.batch_ended(figures())
    assert own.health().state == "ok"
    for _ in range(5):
        clock.ms += 250_000
        own.step_ended("store_lag")
    assert own.health().is_live

    clock.ms += 301_000

    assert "stuck after store_lag" in own.health().reasons[0]


def test_standby_lives_for_as_long_as_it_waits(clock: Clock) -> None:
    own = Monitor()
    own.at("standing by")
    clock.ms += 86_400_000

    assert (own.health().is_live, own.health().is_ready) == (True, False)


@pytest.mark.usefixtures("clock")
def test_clock_that_is_behind_is_critical_until_a_batch_has_another_one() -> None:
    own = Monitor()
    own.batch_ended(figures(stamp=stamp_of(at_ms=NOW_MS, held="the clock", is_clock_behind=True)))
    behind = own.health()
    own.batch_ended(figures())

    assert (behind.is_live, behind.state, own.health().state) == (True, "critical", "ok")


def test_outage_ends_with_the_next_batch(clock: Clock) -> None:
    own = Monitor()
    own.batch_ended(figures())
    own.kafka_failed("Kafka is unavailable: no answer")
    away = own.health()
    own.batch_ended(figures(stamp=stamp_of(at_ms=clock.ms)))

    assert (away.is_live, away.is_ready, away.reasons) == (True, False, ("Kafka is unavailable: no answer",))
    assert own.health().state == "ok"


@pytest.mark.parametrize(
    ("fails", "is_kafka_up"), [("kafka_failed", 0.0), ("storage_failed", None), ("spark_failed", None)]
)
def test_batch_from_before_an_outage_tells_nothing_of_the_brokers(
    fails: str, is_kafka_up: float | None
) -> None:
    own = Monitor()
    own.batch_ended(figures())
    before = parse(metrics(own))
    getattr(own, fails)("no answer")
    found = parse(metrics(own))

    names = ("provisional_partitions", "unanswered_partitions", "offsets_topic_lag_records")
    assert [before.value(f"lagwise_{name}") for name in ("kafka_up", *names)] == [1, 0, 0, 7]
    assert [found.value(f"lagwise_{name}") for name in names] == [None, None, None]
    assert found.value("lagwise_kafka_up") == is_kafka_up
    assert found.value("lagwise_last_batch_timestamp_seconds") == NOW_MS / 1000


def test_brokers_are_unknown_to_a_stuck_driver(clock: Clock) -> None:
    own = Monitor(interval_s=30)
    own.batch_ended(figures())
    clock.ms += 301_000

    assert parse(metrics(own)).value("lagwise_kafka_up") is None


def test_start_stays_over_when_partitions_fall_behind_later() -> None:
    own = Monitor()
    own.batch_ended(figures(is_settled=False))
    assert not own.report().is_settled
    own.batch_ended(figures())
    own.batch_ended(figures(is_settled=False))

    assert own.report().is_settled


def test_figures_add_up_in_metrics() -> None:
    own = Monitor()
    own.owns("prod", "me", 4)
    decisions = [
        ("unchanged", "held back by moves: 9"),
        ("unchanged", "held back by moves: 8"),
        ("dry_run", None),
    ]
    own.batch_ended(figures(decisions=decisions, stamp=stamp_of(at_ms=NOW_MS + 500, behind=(1, 2))))
    own.batch_ended(figures(seconds=301.0, stamp=stamp_of(at_ms=NOW_MS + 500, behind=(1, 2))))

    found = parse(metrics(own))

    def value(name: str, **labels: str) -> float | None:
        return found.value(f"lagwise_{name}", cluster_name="prod", **labels)

    assert value("last_batch_timestamp_seconds") == (NOW_MS + 500) / 1000
    assert value("batch_step_seconds", step="store_lag") == 0.2
    assert value("records_total", kind="commit") == 10
    assert value("quarantined_records_total") == 4
    assert value("decisions_total", decision="unchanged", guard="moves") == 2
    assert value("decisions_total", decision="dry_run") == 1
    assert value("published_plans_total") == 2
    assert value("provisional_partitions") == 2
    assert value("unanswered_partitions") == 0
    assert value("offsets_topic_lag_records") == 7
    assert value("driver_term") == 4
    assert value("kafka_up") == 1
    assert value("batch_seconds_bucket", le="0.25") == 0
    assert value("batch_seconds_bucket", le="0.5") == value("batch_seconds_bucket", le="300") == 1
    assert value("batch_seconds_bucket", le="+Inf") == value("batch_seconds_count") == 2
    assert value("batch_seconds_sum") == pytest.approx(301.3)


def progress(rows: int, **phases_ms: int) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(numInputRows=rows, durationMs=phases_ms))


def test_what_spark_says_of_the_newest_batch_is_in_the_metrics() -> None:
    own = Monitor()
    listener = SparkListener(own)

    listener.onQueryProgress(progress(40, latestOffset=30, addBatch=900, triggerExecution=1_000))
    # Nothing was due since.
    listener.onQueryProgress(progress(0, latestOffset=3, triggerExecution=4))

    found = parse(metrics(own))
    assert found.value("lagwise_source_rows") == 40
    seconds = {
        phase: found.value("lagwise_spark_phase_seconds", phase=phase)
        for phase in ("addBatch", "latestOffset")
    }
    assert seconds == {"addBatch": 0.9, "latestOffset": 0.03}


def test_what_is_not_known_yet_has_no_sample() -> None:
    found = parse(metrics(Monitor()))

    assert found.values[("lagwise_live", frozenset())] == 1
    unknown = {"lagwise_kafka_up", "lagwise_driver_term", "lagwise_last_batch_timestamp_seconds"}
    assert (unknown | {"lagwise_source_rows", "lagwise_spark_phase_seconds"}).isdisjoint(found.kinds)


def reports(run_batch: RunBatch, driver: Driver | None = None, **calls: Any) -> list[Report]:
    """What a runner tells of one batch."""
    told: list[Report] = []
    nothing: Any = None
    runner_of(run_batch, driver=driver, on_batch=told.append, **calls)(nothing, 0)
    return told


@pytest.mark.parametrize(
    ("answer", "left", "unanswered"),
    [(End(log_start=0, stable=5, high=9), 6, 0), ("no leader", None, 1)],
)
def test_partition_without_an_answer_leaves_what_is_left_unknown(
    answer: Any, left: int | None, unanswered: int
) -> None:
    one, other = (OFFSETS_TOPIC, 0), (OFFSETS_TOPIC, 1)
    batch = batch_of(
        idle_driver(),
        stamp=stamp_of(positions={one: Position(5), other: Position(7)}),
        answers={one: answer, other: End(log_start=0, stable=9, high=9)},
    )
    decisions = pa.table({"decision": ["abstain"], "reason": ["why"]})

    (found,) = reports(lambda *_: done(batch, decisions=decisions))

    assert (found.offsets_left, found.unanswered) == (left, unanswered)
    assert found.decisions == (("abstain", "why"),)


def test_runner_tells_of_batches_and_outages() -> None:
    def quick(driver: Driver, _batch_id: int, _frame: Any) -> Outcome:
        return done(batch_of(driver))

    def away(*_: Any) -> Outcome:
        return Outage("no answer")

    driver = idle_driver()
    outages: list[str] = []
    calls: dict[str, Any] = {
        "on_outage": lambda: outages.append("job"),
        "storage": SimpleNamespace(
            until_usable=lambda: None, kafka_was_unavailable=lambda: outages.append("storage")
        ),
    }
    for run_batch in (quick, away):
        reports(run_batch, driver, **calls)
        error = driver.monitor.report().kafka_error
        assert error == (None if run_batch is quick else "Kafka is unavailable: no answer")
    assert sum(driver.monitor.totals.batches.values()) == 1
    assert sorted(outages) == ["job", "storage"]


def test_monitor_is_told_of_each_step_when_it_has_ended() -> None:
    own = Monitor()
    steps = Steps(own)

    def store_lag(value: int) -> int:
        assert own.report().step is None
        return value + 1

    assert steps(store_lag, 1) == 2
    assert (own.report().step, list(steps.seconds)) == ("store_lag", ["store_lag"])
