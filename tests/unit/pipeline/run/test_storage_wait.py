"""A driver waits for storage, goes on by itself, and gives up in the end."""

import logging
import threading
from collections.abc import Iterable

import pytest

from pipeline.config.model import TablesConfig
from pipeline.errors import StoreError
from pipeline.run.health.monitor import Monitor
from pipeline.run.storage_wait import StorageWait
from pipeline.tables import storage

FULL = "the disk of /x is full"


class Waiting:
    """A wait on a clock of its own: each wait takes its time at once."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        answers: Iterable[str | None],
        give_up_after_s: int = 3600,
        root: str = "/x",
    ) -> None:
        script = iter(answers)
        monkeypatch.setattr(storage, "trouble", lambda place: next(script) if place == "/x" else None)
        self.now_s = 0.0
        self.waits_s: list[float] = []
        self.stop = threading.Event()
        self.stop.wait = self._wait
        self.monitor = Monitor()
        self.one = StorageWait(
            TablesConfig(root=root, give_up_after_s=give_up_after_s),
            self.monitor,
            self.stop,
            clock_s=lambda: self.now_s,
        )

    def _wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout or 0.0)
        self.now_s += timeout or 0.0
        return self.stop.is_set()


def test_tables_that_can_be_written_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, [None])

    waiting.one.until_usable()

    assert waiting.waits_s == []
    assert waiting.monitor.health().state != "critical"


def test_outage_is_waited_for_longer_each_time_and_told_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Waiting(monkeypatch, [FULL] * 9 + [None])

    with caplog.at_level(logging.INFO):
        waiting.one.until_usable()

    assert waiting.waits_s == [1, 2, 4, 8, 15, 15, 15, 15, 15]
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.__dict__["for_s"] for record in warnings] == [0, 60]
    assert waiting.monitor.health().state == "critical"


def test_outage_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Waiting(monkeypatch, [FULL, None])

    waiting.one.until_usable()

    todo = "make room, let the driver's user write there, or correct tables.root"
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert warning.__dict__["todo"] == todo
    assert waiting.monitor.health().reasons[0].endswith(f"{FULL}; {todo}")


@pytest.mark.parametrize("root", ["s3a://bucket/tables", "/x"], ids=["object store", "folder"])
def test_tables_are_said_to_be_written_when_a_batch_was_written_and_not_when_a_wait_has_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, root: str
) -> None:
    """An object store is not looked at, and what takes a small file may not take a batch."""
    waiting = Waiting(monkeypatch, [None] * 9, root=root)

    with caplog.at_level(logging.INFO):
        for _ in range(2):
            waiting.one.until_usable("a time-out")
        waited = [record.message for record in caplog.records]
        has_been_written = waiting.one.has_been_written
        waiting.one.batch_ended()
        waiting.one.batch_ended()

    assert (has_been_written, waiting.one.has_been_written) == (False, True)
    assert [message for message in waited if "again" in message] == []
    assert waiting.waits_s == [1, 2]
    (said,) = [record for record in caplog.records if record.levelname == "INFO"]
    assert (said.message, said.__dict__["after_s"]) == ("the tables are written again", 3)


def test_driver_gives_up_with_the_cause_after_the_configured_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, [FULL] * 99, give_up_after_s=60)

    with pytest.raises(
        StoreError, match=r"could not be written for 75 s \(tables.give_up_after_s = 60\): .*full"
    ):
        waiting.one.until_usable()


def test_failures_that_a_look_does_not_show_add_up_until_a_batch_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = Waiting(monkeypatch, [None] * 99, give_up_after_s=30)
    for _ in range(5):
        waiting.one.until_usable("a time-out")
    waiting.one.batch_ended()
    for _ in range(5):
        waiting.one.until_usable("a time-out")

    def fail_on() -> None:
        for _ in range(9):
            waiting.one.until_usable("a time-out")

    with pytest.raises(StoreError, match="a time-out"):
        fail_on()


def test_outage_of_kafka_neither_prolongs_that_of_the_storage_nor_is_reported_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = Waiting(monkeypatch, [None] * 99, give_up_after_s=60)
    waiting.one.until_usable("a time-out")

    for _ in range(2):
        waiting.one.kafka_was_unavailable()
        waiting.now_s += 3600
    reported = waiting.monitor.health().reasons
    waiting.one.until_usable("a time-out")

    assert [reason for reason in reported if "cannot be written" in reason] == []
    assert "a time-out" in waiting.monitor.health().reasons[0]


def test_failures_before_and_after_an_outage_of_kafka_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, [None] * 99, give_up_after_s=20)

    def fail_on() -> None:
        for _ in range(9):
            waiting.one.until_usable("a time-out")
            waiting.one.kafka_was_unavailable()
            waiting.now_s += 3600

    with pytest.raises(StoreError, match=r"could not be written for \d\d s"):
        fail_on()


def test_stop_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, [FULL] * 99)
    waiting.stop.set()

    waiting.one.until_usable()

    assert waiting.waits_s == []
