"""The clock of a batch never goes back, whatever the machine's does."""

import pytest

from pipeline.kafka.positions import Position, Span
from pipeline.run.batch import opening
from pipeline.run.batch.opening import begin
from pipeline.run.driver import Batch
from pipeline.run.replay import ReplayContext
from pipeline.tables.stamp import Stamp
from tests.support.batches import batch_of, first, idle_driver, later, stamp_of

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


class StampedStore:
    """Tables of which each has the same newest stamp, but for those that are named."""

    def __init__(self, stamp: Stamp | None = None, **others: Stamp) -> None:
        self._stamp = stamp
        self._others = others

    def stamp(self, name: str) -> Stamp | None:
        return self._others.get(name, self._stamp)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "now_ms", lambda: NOW_MS)
    monkeypatch.setattr(opening.ownership, "check", lambda _store, _owner: None)


def begun(store: StampedStore, replay: ReplayContext) -> Batch:
    driver = idle_driver(store=store, replay=replay)
    one = batch_of(driver)
    begin(one)
    assert replay.at_ms == one.at_ms
    return one


def test_batch_takes_the_machines_time() -> None:
    assert begun(StampedStore(), later(NOW_MS - 1)).at_ms == NOW_MS


@pytest.mark.parametrize("ahead_ms", [0, 1, HOUR_MS], ids=["same time", "a moment", "an hour"])
def test_clock_that_went_back_moves_on_by_a_millisecond(ahead_ms: int) -> None:
    last_ms = NOW_MS + ahead_ms

    assert begun(StampedStore(), later(last_ms)).at_ms == last_ms + 1


def test_first_batch_after_a_start_goes_on_after_what_the_tables_say() -> None:
    written = stamp_of(at_ms=NOW_MS + HOUR_MS, batch_id=4)

    assert begun(StampedStore(written), first()).at_ms == written.at_ms + 1


def test_replayed_batch_has_the_stamp_and_the_time_of_its_first_write() -> None:
    written = stamp_of(at_ms=NOW_MS - HOUR_MS)

    again = begun(StampedStore(written), first())

    assert (again.is_replay, again.clock, again.at_ms) == (True, written, NOW_MS - HOUR_MS)


def test_same_batch_number_of_another_checkpoint_is_no_replay() -> None:
    written = stamp_of(at_ms=NOW_MS - HOUR_MS, query_id="earlier")

    new = begun(StampedStore(written), first())

    assert (new.is_replay, new.at_ms) == (False, NOW_MS)


def test_batch_left_half_done_is_not_gone_on_with_when_all_is_read_again() -> None:
    # What it says it has read would count as read, and the reason to read again would be forgotten.
    half_done = stamp_of(at_ms=NOW_MS - HOUR_MS, positions={("t", 0): Position(7)})
    doubted = stamp_of(at_ms=NOW_MS - 2 * HOUR_MS, batch_id=4, positions={})

    new = begun(StampedStore(half_done, partition_lag=doubted), first())

    assert (new.is_replay, new.at_ms) == (False, NOW_MS)
    assert new.written == set()


@pytest.mark.parametrize(
    ("ended_at", "is_replay"), [(5, True), (3, False)], ids=["where it began", "batches before it"]
)
def test_batch_is_gone_on_with_only_if_nothing_lies_between_it_and_the_lag_table(
    ended_at: int, is_replay: bool
) -> None:
    # Tables that were copied while a driver wrote are of different batches.
    half_done = stamp_of(at_ms=NOW_MS - HOUR_MS, spans=(Span(topic="t", partition=0, start=5, end=9),))
    lags = stamp_of(at_ms=NOW_MS - 2 * HOUR_MS, batch_id=4, positions={("t", 0): Position(ended_at)})

    again = begun(StampedStore(half_done, partition_lag=lags), first())

    assert again.is_replay == is_replay


def test_batch_that_has_reached_the_lag_table_is_gone_on_with() -> None:
    done = stamp_of(
        at_ms=NOW_MS - HOUR_MS,
        spans=(Span(topic="t", partition=0, start=5, end=9),),
        positions={("t", 0): Position(9)},
    )

    assert begun(StampedStore(done), first()).is_replay
