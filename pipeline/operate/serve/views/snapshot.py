"""All tables at one version each, opened together for one answer."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.serve.metrics.facts import COLUMNS
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.stamp import Stamp

_NAMES = (*COLUMNS, "recommendations", "lag_history")
_NOT_IN_OLD_ONES = "group_history"
"""Tables that an earlier version has written may not have it."""


@dataclass(frozen=True)
class Snapshot:
    """What is read of it belongs together, whatever is written meanwhile."""

    tables: Mapping[str, OpenTable]
    """By name."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The same for the same rows."""
        return tuple(table.version for table in self.tables.values())

    @cached_property
    def stamp(self) -> Stamp | None:
        """Of the newest batch; None before the first."""
        return self.tables["partition_lag"].stamp

    @property
    def observed_at(self) -> datetime | None:
        """Clock of the newest batch; None before the first."""
        return (
            None if self.stamp is None else datetime.fromtimestamp(self.stamp.at_ms / 1000, tz=timezone.utc)
        )

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """As `OpenTable.read`.

        Raises:
            MissingTableError: The page does not show this table, or there is none.
            StoreError: It cannot be read.
        """
        if name not in self.tables:
            raise MissingTableError(f"no table {name}")
        return self.tables[name].read(columns=columns, where=where)


def snapshot(tables: Tables) -> Snapshot:
    """The newest version of each table.

    Raises:
        MissingTableError: The stream has not made them yet.
        StoreError: One cannot be opened.
    """
    found = {name: tables.open(name) for name in _NAMES}
    with suppress(MissingTableError):
        found[_NOT_IN_OLD_ONES] = tables.open(_NOT_IN_OLD_ONES)
    return Snapshot(found)
