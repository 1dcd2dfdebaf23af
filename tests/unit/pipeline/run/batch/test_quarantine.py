"""The step of quarantine: what could not be read, once, and not without end."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch import quarantine
from tests.support.job.frames import NOW_MS, at
from tests.support.job.step_batches import StepBatches

HOUR_MS = 3_600_000


@pytest.fixture
def batches(tmp_path: Path) -> StepBatches:
    return StepBatches(str(tmp_path), quarantine.store_quarantine)


def bad(offset: int, topic: str = "t") -> dict[str, Any]:
    return {
        "row_kind": "bad",
        "topic": topic,
        "offset": offset,
        "timestamp": at(0),
        "kind": "x",
        "reason": "why",
    }


def test_record_that_is_read_again_is_not_quarantined_again(batches: StepBatches) -> None:
    assert batches.run(bad(1), bad(2)) == {"quarantine"}
    batches.run(bad(2), bad(3), bad(2, topic="u"))

    rows = batches.store.rows("quarantine", ["topic", "offset", "batch_id"])
    assert sorted((row["topic"], row["offset"], row["batch_id"]) for row in rows) == [
        *(("t", 1, 0), ("t", 2, 0)),
        *(("t", 3, 1), ("u", 2, 1)),
    ]


def test_batch_without_a_bad_record_writes_nothing(batches: StepBatches) -> None:
    assert batches.run() == set()


def told(batches: StepBatches, caplog: pytest.LogCaptureFixture) -> tuple[list[Any], list[tuple[int, int]]]:
    """What the table says of records that are not in it, and what the log says of each batch: kept and left out."""
    rows = batches.store.rows("quarantine", ["kind", "topic", "offset", "reason", "value"])
    counted = [
        (row["topic"], row["offset"], row["value"], int(row["reason"].split()[0]))
        for row in rows
        if row["kind"] == "left_out"
    ]
    return counted, [(record.quarantined, record.left_out) for record in caplog.records]  # type: ignore[attr-defined]


def test_records_that_tasks_have_only_counted_are_told(
    batches: StepBatches, caplog: pytest.LogCaptureFixture
) -> None:
    batches.run(bad(1), bad(2), counted={"bad": 5})

    assert batches.values("quarantine", "offset") == [1, 2, 2]
    assert told(batches, caplog) == ([("t", 2, None, 3)], [(2, 3)])


def test_so_many_an_hour_are_taken_and_the_others_counted(
    batches: StepBatches, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_ROWS_AN_HOUR", 3)
    batches.run(bad(1), bad(2))
    batches.run(bad(3), bad(4), bad(5), at_ms=NOW_MS + 1)
    batches.run(bad(6), at_ms=NOW_MS + HOUR_MS - 1)
    batches.run(bad(7), bad(8), bad(9), at_ms=NOW_MS + HOUR_MS)

    kept = batches.store.rows("quarantine", ["kind", "offset"])
    assert sorted(row["offset"] for row in kept if row["kind"] == "x") == [1, 2, 3, 7, 8]
    counted, logged = told(batches, caplog)
    assert sorted(counted) == [("t", 4, None, 2), ("t", 6, None, 1), ("t", 9, None, 1)]
    assert logged == [(1, 2), (0, 1), (2, 1)]


def test_record_that_is_left_out_may_name_a_time_after_the_year_9999(
    batches: StepBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_ROWS_AN_HOUR", 1)
    far_us = NOW_MS * 1000 * 1000
    batches.run(bad(1), bad(2) | {"timestamp": far_us})

    rows = batches.store.arrow("quarantine", ["kind", "timestamp"])
    us = dict(zip(rows["kind"].to_pylist(), rows["timestamp"].cast("int64").to_pylist(), strict=True))
    assert us["left_out"] == far_us


def test_so_many_bytes_an_hour_are_taken(
    batches: StepBatches, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_BYTES_AN_HOUR", 30)
    for number in range(3):
        batches.run(bad(number) | {"key": b"k" * 5, "value": b"v" * 15}, at_ms=NOW_MS + number)

    # What comes first is taken while there is any room: a record may be larger than an hour's.
    assert told(batches, caplog) == ([("t", 2, None, 1)], [(0, 1)])


def test_record_that_was_left_out_is_taken_when_it_is_read_again(
    batches: StepBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_ROWS_AN_HOUR", 1)
    batches.run(bad(1), bad(2))
    batches.run(bad(1), bad(2), at_ms=NOW_MS + HOUR_MS)

    rows = batches.store.rows("quarantine", ["kind", "offset"])
    assert sorted((row["kind"], row["offset"]) for row in rows) == [("left_out", 2), ("x", 1), ("x", 2)]


def test_table_that_holds_more_than_an_hours_rows_takes_no_more(
    batches: StepBatches, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches.run(*map(bad, range(5)))
    # An earlier version, or a clock that went back, has let in more than an hour's.
    monkeypatch.setattr(quarantine, "MOST_ROWS_AN_HOUR", 3)
    batches.run(bad(6), bad(7), at_ms=NOW_MS + 1)

    assert told(batches, caplog) == ([("t", 6, None, 2)], [(0, 2)])
