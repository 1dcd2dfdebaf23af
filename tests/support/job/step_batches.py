"""Batches of decoded rows that go through a few steps, with the real fold and real tables, and without Spark."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source.summary import Summary
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, decoded_rows
from tests.support.job.steps import CutShortError, run_steps
from tests.support.job.table_versions import versions_of

_COUNTED_AS = {"group_tombstone": "group"}
_NAMES = [table.name for table in TABLES]


class StepBatches:
    """A driver that knows a few steps only, over empty tables of its own; a batch every second.

    Attributes:
        store: The tables.
        driver: Lasts until `restart`.
    """

    def __init__(self, root: str, *steps: Callable[..., Any], **of_driver: Any) -> None:
        """Tables are made.

        Args:
            root: Their folder.
            steps: Of each batch.
            of_driver: See `idle_driver`.
        """
        create_tables(root, retention_hours=1, storage_options={})
        self._steps = steps
        self._batches = 0
        self.store = Store(root, term=1)
        self._of_driver = of_driver
        self.driver = idle_driver(store=self.store, **of_driver)

    def restart(self) -> None:
        """Go on with a driver that has not run a batch."""
        self.driver = idle_driver(store=self.store, **self._of_driver)

    def run(
        self,
        *events: dict[str, Any],
        reread: Iterable[PartitionKey] = (),
        beheaded: Iterable[PartitionKey] = (),
        behind: Iterable[int] = (),
        written: Iterable[str] = (),
        counted: Mapping[str, int] | None = None,
        at_ms: int | None = None,
        cut_behind: str | None = None,
    ) -> set[str]:
        """The tables that the next batch writes.

        Args:
            events: Decoded rows, see `frames.decoded`.
            reread: Partitions of any topic that it begins to read from their start.
            beheaded: Of these, those that have lost their beginning.
            behind: Partitions of the offsets topic that it does not read to their end.
            written: Tables that hold it from a run before.
            counted: What the workers counted by kind; without it, the events.
            at_ms: Its clock; None for a second after the batch before.
            cut_behind: The step behind which it is cut short; None for none.
        """
        counts: dict[str, int] = {}
        for event in events:
            kind = _COUNTED_AS.get(event["row_kind"], event["row_kind"])
            counts[kind] = counts.get(kind, 0) + 1
        stamp = stamp_of(
            batch_id=self._batches,
            at_ms=NOW_MS + self._batches * 1000 if at_ms is None else at_ms,
            behind=tuple(behind),
            reread=tuple(reread),
            beheaded=tuple(beheaded),
            positions={},
        )
        batch = batch_of(
            self.driver,
            stamp=stamp,
            decoded=decoded_rows(*events),
            summary=Summary(counts=dict(counted or counts)),
            written=written,
        )
        before = versions_of(self.store, _NAMES)
        with suppress(CutShortError):
            run_steps(batch, *self._steps, cut_behind=cut_behind)
        self._batches += 1
        after = versions_of(self.store, _NAMES)
        return {name for name in _NAMES if after[name] > before[name]}

    def values(self, name: str, column: str) -> list[Any]:
        """A column of a table, sorted."""
        return sorted(row[column] for row in self.store.rows(name, [column]))


def offsets(*partitions: int) -> list[PartitionKey]:
    """Partitions of the offsets topic."""
    return [(OFFSETS_TOPIC, number) for number in partitions]
