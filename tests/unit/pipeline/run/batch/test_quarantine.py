"""The step of quarantine: what could not be read, once, and not without end."""

import logging
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch import steps
from tests.support.frames import at
from tests.support.step_batches import StepBatches


@pytest.fixture
def batches(tmp_path: Path) -> StepBatches:
    return StepBatches(str(tmp_path), steps.store_quarantine)


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


def test_records_that_were_only_counted_are_told(
    batches: StepBatches, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        batches.run(bad(1), bad(2), counted={"bad": 5})

    assert len(batches.values("quarantine", "offset")) == 2
    (record,) = caplog.records
    assert (record.quarantined, record.left_out) == (2, 3)  # type: ignore[attr-defined]
