"""When the tables of what members and operators say are written, and from what."""

from types import SimpleNamespace

import pytest

from pipeline.decode.step import Summary
from pipeline.fold import control_messages as fold_control
from pipeline.kafka.positions import PartitionKey
from pipeline.run.batch import control_messages
from pipeline.run.batch.control_messages import store_control_messages
from pipeline.run.driver import Batch
from tests.support.batches import CONTROL, batch_of, idle_driver, stamp_of

ACKS, COMMANDS = (CONTROL.acks_topic, 0), (CONTROL.commands_topic, 0)


class Rows:
    """A table."""

    def __init__(self, n: int) -> None:
        self.n = n

    def limit(self, n: int) -> "Rows":
        return Rows(n)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Rows that each table which is written had before."""
    sizes: dict[str, int] = {}
    monkeypatch.setattr(fold_control, "fold_acks", lambda stored, *_rows, **_settings: stored)
    monkeypatch.setattr(fold_control, "fold_orders", lambda stored, *_rows: stored)
    monkeypatch.setattr(control_messages, "stamped", lambda _batch, rows: rows)
    monkeypatch.setattr(control_messages, "write", lambda _batch, name, rows: sizes.update({name: rows.n}))
    monkeypatch.setattr(Batch, "kind", lambda _self, *_kinds: None)
    return sizes


def heard(*reread: PartitionKey, stored: int = 3, **counts: int) -> Batch:
    store = SimpleNamespace(read=lambda _name: Rows(stored), has_rows=lambda _name: stored > 0)
    driver = idle_driver(store=store)
    return batch_of(driver, stamp=stamp_of(reread=reread), summary=Summary(counts=counts))


def test_nothing_said_writes_nothing(written: dict[str, int]) -> None:
    store_control_messages(heard())

    assert written == {}


def test_what_was_said_is_added_to_what_is_stored(written: dict[str, int]) -> None:
    store_control_messages(heard(ack=1))

    assert written == {"acks": 3}


def test_topic_read_again_replaces_what_is_stored_whether_anything_is_said_in_it_or_not(
    written: dict[str, int],
) -> None:
    store_control_messages(heard(ACKS, COMMANDS, orders=1))

    assert written == {"acks": 0, "orders": 0}


def test_topic_read_again_writes_nothing_where_nothing_was_stored(written: dict[str, int]) -> None:
    store_control_messages(heard(ACKS, COMMANDS, stored=0))

    assert written == {}


def test_topic_read_again_leaves_what_is_said_in_the_other_one(written: dict[str, int]) -> None:
    store_control_messages(heard(ACKS, orders=1))

    assert written == {"acks": 0, "orders": 3}


def test_table_that_holds_the_batch_is_not_written_again(written: dict[str, int]) -> None:
    again = heard(ACKS, orders=1)
    again.written.add("acks")

    store_control_messages(again)

    assert written == {"orders": 3}
