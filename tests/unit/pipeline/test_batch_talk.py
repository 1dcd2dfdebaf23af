"""When the tables of what members and operators say are written, and from what."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import batch, fold_talk
from pipeline.batch import store_talk
from pipeline.config_model import Config
from pipeline.decode import Summary
from pipeline.driver import Batch, Driver
from pipeline.gate import Gate
from pipeline.store import Stamp


class Rows:
    """A table of three rows, or of none."""

    def __init__(self, n: int = 3) -> None:
        self.n = n

    def limit(self, n: int) -> "Rows":
        return Rows(n)

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        return self.n == 0


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Rows that each table which is written had before."""
    sizes: dict[str, int] = {}
    monkeypatch.setattr(fold_talk, "fold_acks", lambda stored, *_rows, **_settings: stored)
    monkeypatch.setattr(fold_talk, "fold_orders", lambda stored, *_rows: stored)
    monkeypatch.setattr(batch, "_stamped", lambda _batch, rows: rows)
    monkeypatch.setattr(batch, "_write", lambda _batch, name, rows: sizes.update({name: rows.n}))
    monkeypatch.setattr(Batch, "kind", lambda _self, *_kinds: None)
    return sizes


def talk(*, foreign: frozenset[str] = frozenset(), **counts: int) -> Batch:
    store: Any = SimpleNamespace(read=lambda _name: Rows())
    other: Any = None
    driver = Driver(
        config=Config(),
        cluster="c",
        store=store,
        owner="me",
        gate=Gate(topic="t", ends_at_start={}, started_at_ms=0, deadline_s=1, tolerance_s=1),
        ask_ends=dict,
        publisher=other,
        max_record_bytes=1,
        foreign=foreign,
    )
    stamp = Stamp(query_id="q", batch_id=0, at_ms=1, behind=(), reason=None)
    return Batch(driver=driver, rows=other, batch_id=0, stamp=stamp, summary=Summary(counts=counts))


def test_nothing_said_writes_nothing(written: dict[str, int]) -> None:
    store_talk(talk())

    assert written == {}


def test_what_was_said_is_added_to_what_is_stored(written: dict[str, int]) -> None:
    store_talk(talk(ack=1))

    assert written == {"acks": 3}


def test_words_read_under_another_checkpoint_go_with_its_first_batch_whether_any_are_said_or_not(
    written: dict[str, int],
) -> None:
    store_talk(talk(foreign=frozenset({"acks", "orders"}), orders=1))

    assert written == {"acks": 0, "orders": 0}
