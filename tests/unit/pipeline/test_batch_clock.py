"""The clock of a batch never goes back, whatever the machine's does."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import batch
from pipeline.batch import begin
from pipeline.config_model import Config
from pipeline.driver import Batch, Driver
from pipeline.gate import Gate
from pipeline.store import Stamp

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


class StampedStore:
    """Tables of which each has the same newest stamp."""

    def __init__(self, stamp: Stamp | None = None) -> None:
        self._stamp = stamp

    def stamp(self, _name: str) -> Stamp | None:
        return self._stamp


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "time", SimpleNamespace(time_ns=lambda: NOW_MS * 1_000_000))
    monkeypatch.setattr(batch.ownership, "check", lambda _store, _owner: None)


def begun(store: StampedStore, *, last_ms: int = 0, started: bool = True, batch_id: int = 5) -> Stamp:
    other: Any = object()
    tables: Any = store
    driver = Driver(
        config=Config(),
        cluster="c",
        store=tables,
        owner="me",
        gate=Gate(topic="t", ends_at_start={}, started_at_ms=NOW_MS, deadline_s=1, tolerance_s=1),
        ask_ends=dict,
        max_record_bytes=1,
        publisher=other,
        query_id="query",
        at_ms=last_ms,
        started=started,
    )
    one = Batch(driver=driver, rows=other, batch_id=batch_id)
    begin(one)
    assert driver.at_ms == one.clock.at_ms
    return one.clock


def stamp(*, at_ms: int, batch_id: int, query_id: str = "query") -> Stamp:
    return Stamp(query_id=query_id, batch_id=batch_id, at_ms=at_ms, behind=(), reason=None)


def test_batch_takes_the_machines_time() -> None:
    assert begun(StampedStore(), last_ms=NOW_MS - 1).at_ms == NOW_MS


@pytest.mark.parametrize("ahead_ms", [0, 1, HOUR_MS], ids=["same time", "a moment", "an hour"])
def test_clock_that_went_back_moves_on_by_a_millisecond(ahead_ms: int) -> None:
    last_ms = NOW_MS + ahead_ms

    assert begun(StampedStore(), last_ms=last_ms).at_ms == last_ms + 1


def test_first_batch_after_a_start_goes_on_after_what_the_tables_say() -> None:
    written = stamp(at_ms=NOW_MS + HOUR_MS, batch_id=4)

    assert begun(StampedStore(written), started=False).at_ms == written.at_ms + 1


def test_replayed_batch_has_the_time_of_its_first_write() -> None:
    written = stamp(at_ms=NOW_MS - HOUR_MS, batch_id=5)

    assert begun(StampedStore(written), started=False, batch_id=5) == written


def test_same_batch_number_of_another_checkpoint_is_no_replay() -> None:
    written = stamp(at_ms=NOW_MS - HOUR_MS, batch_id=5, query_id="earlier")

    assert begun(StampedStore(written), started=False, batch_id=5).at_ms == NOW_MS
