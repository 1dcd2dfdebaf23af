"""What a batch asks and reads."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch import opening
from pipeline.run.batch.opening import decode_records
from pipeline.run.driver import Batch
from pipeline.tables.creation import create_tables
from pipeline.tables.store import Store
from tests.support.batches import batch_of, idle_driver
from tests.support.frames import decoded_rows

ANSWER = {"row_kind": "log_offset", "log_end_offset": 9}
LISTING = {"row_kind": "listing", "topic": None}
COMMIT = {"row_kind": "commit", "position": 3}
COUNT = {"row_kind": "count", "kind": "commit", "count": 1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return Store(str(tmp_path), term=1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked or read, in that order, with an answer and a commit to be had."""
    done: list[str] = []

    def found(what: str, *rows: dict[str, Any]) -> Any:
        def read(*_arguments: object) -> Any:
            done.append(what)
            return decoded_rows(*rows)

        return read

    monkeypatch.setattr(opening.records, "read", found("records", COMMIT, COUNT))
    monkeypatch.setattr(opening.log_offsets, "read", found("log offsets", LISTING, ANSWER))
    return done


def decoded(store: Store, **fields: Any) -> Batch:
    batch = batch_of(idle_driver(store=store), **fields)
    decode_records(batch)
    return batch


def test_what_was_asked_and_read_is_together(store: Store, asked: list[str]) -> None:
    batch = decoded(store)

    assert asked == ["records", "log offsets"]
    assert batch.decoded.kind("log_offset")["log_end_offset"].to_pylist() == [9]
    assert batch.decoded.kind("commit")["position"].to_pylist() == [3]
    assert (batch.summary.is_listed, batch.summary.counts) == (True, {"commit": 1})


def test_batch_that_runs_again_reads_again_and_asks_nothing(store: Store, asked: list[str]) -> None:
    batch = decoded(store, is_replay=True)

    assert asked == ["records"]
    assert batch.decoded.kind("log_offset").num_rows == 0
    assert not batch.summary.is_listed
