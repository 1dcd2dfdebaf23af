"""When `--once` ends."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.model import Config, KafkaConfig
from pipeline.errors import BrokerUnavailableError
from pipeline.run import job as job_module
from pipeline.run.job import Job
from pipeline.tables import storage
from tests.support.job.batches import deaf_session


def batch(*, is_complete: bool = False, is_overdue: bool = False, has_read: bool = False) -> Any:
    return SimpleNamespace(is_complete=is_complete, is_overdue=is_overdue, has_read=has_read)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"s": 1000.0}
    monkeypatch.setattr(job_module.time, "monotonic", lambda: now["s"])
    return now


def ended(clock: dict[str, float], *batches: tuple[float, Any], once: bool = True) -> tuple[bool, bool]:
    """Whether the job stops after batches, each so many seconds after the one before, and whether it is incomplete."""
    job = Job(Config(), once=once)
    for seconds, report in batches:
        clock["s"] += seconds
        job._finished(report)
    return job.stop.is_set(), job.is_incomplete


def test_everything_read_ends_it_complete(clock: dict[str, float]) -> None:
    assert ended(clock, (0, batch(has_read=True)), (1, batch(is_complete=True))) == (True, False)


def test_deadline_ends_it_incomplete(clock: dict[str, float]) -> None:
    assert ended(clock, (0, batch(has_read=True, is_overdue=True))) == (True, True)


def test_a_minute_in_which_no_batch_reads_more_ends_it_incomplete(clock: dict[str, float]) -> None:
    idle = [(30.0, batch()), (31.0, batch())]

    assert ended(clock, (0, batch(has_read=True)), *idle) == (True, True)
    assert ended(clock, (0, batch(has_read=True)), *idle[:1]) == (False, False)


def test_batch_that_reads_more_begins_the_minute_anew(clock: dict[str, float]) -> None:
    assert ended(clock, (0, batch()), (50, batch(has_read=True)), (50, batch())) == (False, False)


def test_first_batch_however_long_it_took_is_not_the_end(clock: dict[str, float]) -> None:
    assert ended(clock, (300, batch())) == (False, False)


def test_stream_goes_on(clock: dict[str, float]) -> None:
    assert ended(clock, (0, batch()), (100, batch()), (100, batch()), once=False) == (False, False)


def test_kafka_that_goes_away_for_a_minute_ends_it_incomplete(clock: dict[str, float]) -> None:
    job = Job(Config(), once=True)
    job._finished(batch(has_read=True))
    clock["s"] += 59
    job._read_nothing()
    assert not job.stop.is_set()

    clock["s"] += 2
    job._read_nothing()

    assert (job.stop.is_set(), job.is_incomplete) == (True, True)


def test_kafka_that_never_answers_ends_it_incomplete(
    clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(Config(kafka=KafkaConfig(properties={"bootstrap.servers": "nowhere:9092"})), once=True)
    monkeypatch.setattr(job.stop, "wait", lambda wait_s: clock.update(s=clock["s"] + wait_s))

    for _ in range(3):
        job._wait_for_cluster("Kafka is unavailable", BrokerUnavailableError("no broker answers"))
    assert not job.stop.is_set()
    for _ in range(5):
        job._wait_for_cluster("Kafka is unavailable", BrokerUnavailableError("no broker answers"))

    assert (job.stop.is_set(), job.is_incomplete) == (True, True)


@pytest.mark.parametrize("once", [True, False])
def test_pokes_of_its_plans_end_before_it_does(monkeypatch: pytest.MonkeyPatch, once: bool) -> None:
    monkeypatch.setattr(job_module, "build_session", lambda *_args, **_more: deaf_session())
    monkeypatch.setattr(job_module, "create_tables", lambda *_args, **_more: None)
    monkeypatch.setattr(job_module, "_jars", tuple)
    monkeypatch.setattr(storage, "trouble", lambda _place: None)
    finished: list[str] = []
    job = Job(Config(), once=once)
    monkeypatch.setattr(job, "_stream", lambda _spark: job.stop.set())
    monkeypatch.setattr(job, "_pokes", SimpleNamespace(finish=lambda: finished.append("pokes")))

    job.run()

    assert finished == (["pokes"] if once else [])
