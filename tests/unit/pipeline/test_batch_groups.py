"""When the table of groups is written: not in every batch, but never too seldom."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import batch, fold
from pipeline.batch import _look_back, run, store_groups
from pipeline.config_model import Config
from pipeline.decode import Summary
from pipeline.driver import Batch, Driver
from pipeline.gate import Gate
from pipeline.store import Stamp


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(fold, "fold_groups", lambda *_args, **_settings: None)
    monkeypatch.setattr(batch, "_stamped", lambda _batch, rows: rows)
    monkeypatch.setattr(batch, "_write", lambda _batch, name, _rows: names.append(name))
    monkeypatch.setattr(Batch, "kind", lambda _self, *_kinds: None)
    return names


@pytest.fixture
def driver() -> Driver:
    store: Any = SimpleNamespace(read=lambda _name: None)
    other: Any = None
    gate = Gate(topic="t", ends_at_start={}, started_at_ms=0, deadline_s=1, tolerance_s=1)
    return Driver(
        config=Config(),
        cluster="c",
        store=store,
        owner="me",
        gate=gate,
        ask_ends=dict,
        publisher=other,
        max_record_bytes=1,
    )


def run_batches(driver: Driver, *batches: tuple[tuple[int, ...], int]) -> None:
    for batch_id, (behind, group_records) in enumerate(batches):
        stamp = Stamp(query_id="q", batch_id=batch_id, at_ms=batch_id, behind=behind, reason=None)
        rows: Any = None
        summary = Summary(counts={"group": group_records})
        run(Batch(driver=driver, rows=rows, batch_id=batch_id, stamp=stamp, summary=summary), (store_groups,))


@pytest.mark.parametrize(
    ("batches", "times"),
    [
        pytest.param([((), 0)], 1, id="first batch"),
        pytest.param([((), 0), ((), 0), ((), 0)], 1, id="nothing new"),
        pytest.param([((), 0), ((), 1), ((), 0)], 2, id="group records"),
        # Groups of an earlier checkpoint stay until then, and those that are gone must not stay longer.
        pytest.param([((3, 7), 0), ((7,), 0), ((), 0), ((), 0)], 3, id="partitions read to their end"),
    ],
)
def test_groups_are_written_when_they_may_have_changed(
    written: list[str], driver: Driver, batches: list[tuple[tuple[int, ...], int]], times: int
) -> None:
    run_batches(driver, *batches)

    assert written == ["consumer_groups"] * times


@pytest.mark.parametrize(
    ("groups_of", "lag_of", "is_foreign"),
    [
        pytest.param("earlier", "earlier", True, id="new checkpoint"),
        pytest.param("q", "q", False, id="same checkpoint"),
        pytest.param("q", "earlier", False, id="new checkpoint, first batch half done"),
        pytest.param(None, "earlier", True, id="new checkpoint, stamp cut off with the log"),
        pytest.param(None, "q", False, id="same checkpoint, stamp cut off with the log"),
        pytest.param(None, None, False, id="new tables"),
    ],
)
def test_groups_of_another_checkpoint_are_known_as_such(
    driver: Driver, groups_of: str | None, lag_of: str | None, is_foreign: bool
) -> None:
    queries = {"consumer_groups": groups_of, "partition_lag": lag_of}
    stamps = {
        name: Stamp(query_id=query_id, batch_id=8, at_ms=1, behind=(), reason=None)
        for name, query_id in queries.items()
        if query_id
    }
    store: Any = SimpleNamespace(stamp=stamps.get)
    driver.store, driver.query_id = store, "q"

    _look_back(driver, batch_id=9)

    assert ("consumer_groups" in driver.foreign) == is_foreign
