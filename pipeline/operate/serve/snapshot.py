"""Tables at one version each, opened together for one answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import clock
from pipeline.errors import MissingTableError
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.stamp import Stamp


@dataclass(frozen=True)
class Snapshot:
    """Its tables belong together, whatever is written meanwhile."""

    tables: Mapping[str, OpenTable]
    """By name."""

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions of the tables, equal for equal rows."""
        return tuple(table.version for table in self.tables.values())

    @cached_property
    def stamp(self) -> Stamp | None:
        """Stamp of the newest batch; None before the first."""
        return self.tables["partition_lag"].stamp

    @property
    def observed_at(self) -> datetime | None:
        """Clock of the newest batch; None before the first."""
        return None if self.stamp is None else clock.at(self.stamp.at_ms)

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """As `OpenTable.read`.

        Raises:
            MissingTableError: The snapshot does not have this table.
            StoreError: It cannot be read.
        """
        if name not in self.tables:
            raise MissingTableError(f"no table {name}")
        return self.tables[name].read(columns=columns, where=where)


def snapshot(tables: Tables, names: Iterable[str], *, may_miss: Collection[str] = ()) -> Snapshot:
    """The newest version of each named table; only those in `may_miss` may be missing.

    `partition_lag` must be among the names.

    Raises:
        MissingTableError: The stream has not made them yet.
        StoreError: One cannot be opened.
    """
    found = {}
    for name in names:
        try:
            found[name] = tables.open(name)
        except MissingTableError:
            if name not in may_miss:
                raise
    return Snapshot(found)
