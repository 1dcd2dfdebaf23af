"""When the tables of acknowledgements and orders are written, and from what."""

from types import SimpleNamespace

import pytest

from pipeline.decode.step import Summary
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
    monkeypatch.setattr(control_messages, "fold_acks", lambda stored, *_rows, **_settings: stored)
    monkeypatch.setattr(control_messages, "fold_orders", lambda stored, *_rows: stored)
    monkeypatch.setattr(control_messages, "stamped", lambda _batch, rows: rows)
    monkeypatch.setattr(control_messages, "write", lambda _batch, name, rows: sizes.update({name: rows.n}))
    monkeypatch.setattr(Batch, "kind", lambda _self, *_kinds: None)
    return sizes


def read(*reread: PartitionKey, stored: int = 3, **counts: int) -> Batch:
    store = SimpleNamespace(read=lambda _name: Rows(stored), has_rows=lambda _name: stored > 0)
    driver = idle_driver(store=store)
    return batch_of(driver, stamp=stamp_of(reread=reread), summary=Summary(counts=counts))


def test_batch_without_control_messages_writes_nothing(written: dict[str, int]) -> None:
    store_control_messages(read())

    assert written == {}


def test_new_messages_are_added_to_what_is_stored(written: dict[str, int]) -> None:
    store_control_messages(read(ack=1))

    assert written == {"acks": 3}


def test_topic_read_again_replaces_what_is_stored_even_if_it_is_empty(
    written: dict[str, int],
) -> None:
    store_control_messages(read(ACKS, COMMANDS, orders=1))

    assert written == {"acks": 0, "orders": 0}


def test_topic_read_again_writes_nothing_where_nothing_was_stored(written: dict[str, int]) -> None:
    store_control_messages(read(ACKS, COMMANDS, stored=0))

    assert written == {}


def test_topic_read_again_leaves_the_messages_of_the_other_one(written: dict[str, int]) -> None:
    store_control_messages(read(ACKS, orders=1))

    assert written == {"acks": 0, "orders": 3}


def test_table_that_holds_the_batch_is_not_written_again(written: dict[str, int]) -> None:
    again = read(ACKS, orders=1)
    again.written.add("acks")

    store_control_messages(again)

    assert written == {"orders": 3}
