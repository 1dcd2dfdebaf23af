"""The opening of a batch: its clock, what the source has chosen for it, and whether it may write."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.errors import (
    AccessRefusedError,
    BrokerUnavailableError,
    PipelineError,
    StorageUnavailableError,
    TablesChangedError,
    TopicMissingError,
)
from pipeline.kafka.positions import Position, Span
from pipeline.planning.memory import PlanInTopic
from pipeline.run.batch import opening
from pipeline.run.batch.opening import (
    Chosen,
    Outage,
    PassedOver,
    Skipped,
    begin,
    read_source,
    settle_offset,
)
from pipeline.run.batch.steps import Outcome, run
from pipeline.run.driver import Driver
from pipeline.run.replay import ReplayContext
from pipeline.source.offset import SourceOffset, state_of
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import first, idle_driver, later, stamp_of
from tests.support.spark.read_frames import read_frame

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SAID = "Kafka is unavailable"


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


def frame_of(offset: SourceOffset | dict[str, Any], *rows: dict[str, Any]) -> Any:
    return read_frame(offset.to_json() if isinstance(offset, SourceOffset) else offset, *rows)


def opened(driver: Driver, offset: SourceOffset | dict[str, Any]) -> Chosen | Skipped:
    begun = begin(driver, 5)
    return settle_offset(driver, begun, read_source(driver, 5, frame_of(offset)).offset)


def begun(store: StampedStore, replay: ReplayContext, **offset: Any) -> Chosen:
    """A batch that was chosen from what the store's lag table holds."""
    newest = store.stamp("partition_lag")
    driver = idle_driver(store=store, replay=replay, stamp=newest)
    one = opened(
        driver,
        SourceOffset(**{"tick": NOW_MS, "made_from": state_of(newest), "chosen_by": replay.query, **offset}),
    )
    assert isinstance(one, Chosen)
    assert replay.at_ms == one.at_ms
    return one


def test_batch_takes_the_machines_time() -> None:
    assert begun(StampedStore(), later(NOW_MS - 1)).at_ms == NOW_MS


def test_figures_are_of_the_time_at_which_the_source_began_to_ask() -> None:
    """A broker that is silent keeps it waiting, and what the others said is no newer for that."""
    asked_ms = NOW_MS - 15_000

    assert begun(StampedStore(), later(asked_ms - 1), tick=asked_ms).at_ms == asked_ms
    assert begun(StampedStore(), later(NOW_MS - 2), tick=asked_ms).at_ms == NOW_MS - 1


@pytest.mark.parametrize("ahead_ms", [0, 1, HOUR_MS], ids=["same time", "a moment", "an hour"])
def test_clock_that_went_back_moves_on_by_a_millisecond(ahead_ms: int) -> None:
    last_ms = NOW_MS + ahead_ms

    assert begun(StampedStore(), later(last_ms)).at_ms == last_ms + 1


def test_first_batch_after_a_start_goes_on_after_what_the_tables_say() -> None:
    written = stamp_of(at_ms=NOW_MS + HOUR_MS, tick=4)

    assert begun(StampedStore(written), first()).at_ms == written.at_ms + 1


HALF_DONE = stamp_of(
    at_ms=NOW_MS - HOUR_MS, tick=NOW_MS, spans=(Span(topic="t", partition=0, start=5, end=9),)
)
BEFORE = stamp_of(at_ms=NOW_MS - 2 * HOUR_MS, tick=6, positions={("t", 0): Position(5)})


def test_replayed_batch_has_the_stamp_and_the_time_of_its_first_write() -> None:
    store = StampedStore(partition_lag=BEFORE, topic_offsets=HALF_DONE)

    again = begun(store, first())

    assert (again.first_run, again.at_ms) == (HALF_DONE, HALF_DONE.at_ms)
    assert again.past is not None
    assert set(again.past.holding(again.offset.tick)) == {"topic_offsets"}


def test_batch_that_was_begun_by_another_checkpoint_is_no_replay() -> None:
    # Its checkpoint was lost; what it has stored of topics is stored again.
    store = StampedStore(partition_lag=BEFORE, topic_offsets=replace(HALF_DONE, tick=5))

    new = begun(store, first())

    assert (new.first_run, new.at_ms) == (None, NOW_MS)


def test_batch_left_half_done_is_passed_over_when_all_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    # What it says it has read would count as read, and the reason to read again would be forgotten.
    doubted = replace(BEFORE, positions={}, tick=0)
    store = StampedStore(partition_lag=doubted, topic_offsets=HALF_DONE)
    driver = idle_driver(store=store, replay=first(), stamp=doubted)

    new = opened(driver, SourceOffset(tick=NOW_MS, made_from=state_of(BEFORE)))

    assert isinstance(new, PassedOver)
    (line,) = [record for record in caplog.records if "is skipped" in record.message]
    assert line.__dict__["batch_id"] == 5
    assert line.__dict__["reason"] == new.reason
    assert state_of(doubted) in new.reason


def test_batch_that_has_reached_the_lag_table_is_gone_on_with() -> None:
    done = replace(HALF_DONE, positions={("t", 0): Position(9)})

    assert begun(StampedStore(done), first(), made_from=state_of(BEFORE)).first_run == done


@pytest.mark.parametrize(
    "offset",
    [
        pytest.param({"offset": 12, "timestamp": 3}, id="a source of an earlier version"),
        pytest.param(SourceOffset(tick=7, made_from="1234"), id="other tables"),
    ],
)
def test_batch_that_was_not_chosen_for_these_tables_ends_there(offset: Any) -> None:
    driver = idle_driver(store=StampedStore(BEFORE), stamp=BEFORE, replay=later())
    outcome = run(driver, 5, frame_of(offset))

    assert isinstance(outcome, PassedOver)
    assert driver.monitor.report().step == "settle_offset"
    assert driver.progress.stamp == BEFORE


def test_what_was_asked_and_read_is_together() -> None:
    offset = SourceOffset(tick=7, made_from="empty", chosen_by="q")
    frame = frame_of(
        offset,
        {"row_kind": "listing", "topic": None},
        {"row_kind": "log_offset", "log_end_offset": 9},
        {"row_kind": "commit", "position": 3},
        {"row_kind": "count", "kind": "commit", "count": 1},
    )

    batch = read_source(idle_driver(), 5, frame)

    assert batch.offset == offset

    assert batch.decoded.kind("log_offset")["log_end_offset"].to_pylist() == [9]
    assert batch.decoded.kind("commit")["position"].to_pylist() == [3]
    assert (batch.summary.is_listed, batch.summary.counts) == (True, {"commit": 1})


def failing(error: PipelineError, *, query: str = "q") -> SourceOffset:
    failure = type(error).__name__, str(error)
    return SourceOffset(tick=7, made_from="empty", chosen_by=query, failure=failure)


def test_tables_that_somebody_else_has_changed_end_the_query_with_the_second_batch() -> None:
    """As when an older driver wrote once more while this one began, or a copy was restored under it."""
    driver = idle_driver(store=StampedStore(), replay=later(), stamp=stamp_of(at_ms=5))
    other = SourceOffset(tick=7, made_from="6", chosen_by="q")

    assert isinstance(opened(driver, other), PassedOver)
    with pytest.raises(TablesChangedError, match="chosen from tables as of 6, and these are as of 5"):
        opened(driver, other)


def test_batches_of_earlier_queries_are_passed_over_however_many_there_are() -> None:
    driver = idle_driver(store=StampedStore(), replay=later(), stamp=stamp_of(at_ms=5))

    assert all(
        isinstance(opened(driver, SourceOffset(tick=7, made_from="6", chosen_by="p")), PassedOver)
        for _ in range(3)
    )


def test_failure_that_ended_an_earlier_query_ends_no_later_one() -> None:
    driver = idle_driver(store=StampedStore(), replay=later())
    assert driver.replay.query == "q"

    batch = opened(driver, failing(TopicMissingError("topic acks is gone"), query="the one before"))

    assert batch == PassedOver(
        "it was chosen before this query began, and choosing it failed: topic acks is gone"
    )
    with pytest.raises(TopicMissingError):
        opened(driver, failing(TopicMissingError("topic acks is gone")))


def run_at(driver: Driver, error: PipelineError, at_s: int, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(opening, "now_ms", lambda: at_s * 1000)
    return run(driver, 5, frame_of(failing(error)))


def silent_driver() -> Driver:
    return idle_driver(store=StampedStore(), replay=later())


def test_batch_without_any_answer_ends_there_and_leaves_the_driver_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = silent_driver()

    assert run_at(driver, BrokerUnavailableError("no answer"), 100, monkeypatch) == Outage("no answer")
    assert driver.monitor.report().step == "settle_offset"
    assert driver.progress.stamp is None


def test_outage_is_said_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = silent_driver()

    for at_s in (100, 130, 159, 160, 190):
        run_at(driver, BrokerUnavailableError("no answer"), at_s, monkeypatch)

    said = [record for record in caplog.records if SAID in record.message]
    assert [record.__dict__["error"] for record in said] == ["no answer"] * 2
    assert (
        said[0].__dict__["bootstrap_servers"] == driver.services.config.kafka.properties["bootstrap.servers"]
    )


@pytest.mark.parametrize(
    "error", [TopicMissingError("gone"), AccessRefusedError("not you"), StorageUnavailableError("disk full")]
)
def test_what_another_batch_does_not_cure_ends_the_stream(
    error: PipelineError, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(type(error), match=str(error)):
        run_at(silent_driver(), error, 100, monkeypatch)


def test_clock_that_is_behind_the_tables_is_named_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    ahead = stamp_of(at_ms=NOW_MS + 24 * HOUR_MS)
    driver = idle_driver(store=StampedStore(ahead), stamp=ahead)

    batches = [begin(driver, number) for number in range(3)]

    assert [batch.at_ms for batch in batches] == [ahead.at_ms + 1] * 3
    why = batches[0].clock_trouble or ""
    assert "2023-11-14 22:13:20Z" in why
    assert "2023-11-15 22:13:20Z, 24.0 h later" in why
    assert [one.message for one in caplog.records] == [
        "this host's clock is behind the stored times, so lagwise makes no plan"
    ]


def test_clock_that_is_behind_a_plan_on_the_control_topic_is_named() -> None:
    driver = idle_driver(store=StampedStore(stamp_of(at_ms=NOW_MS - 1)))
    epoch = (NOW_MS + 365 * 24 * HOUR_MS) // 1000
    driver.memory.on_connected({"g": PlanInTopic(17), "h": PlanInTopic(epoch)}, {})

    batch = begin(driver, 5)

    assert batch.at_ms == NOW_MS
    assert f"epoch {epoch} of group h" in (batch.clock_trouble or "")
    assert "2024-11-13 22:13:20Z, 8760.0 h later" in (batch.clock_trouble or "")


def test_clock_of_another_host_may_be_a_little_behind_the_tables() -> None:
    driver = idle_driver(store=StampedStore(stamp_of(at_ms=NOW_MS + 4_000)))

    assert begin(driver, 5).clock_trouble is None
