"""Store: the version of each table's schema, and the changes from one version to the next.

A version counts only what other versions of lagwise cannot read or write: a column that is removed, renamed, or of
another type or meaning, and other partitions. A new nullable column keeps the version, so that an older lagwise works.

The table's log holds it as the Delta transaction `("lagwise-schema", version)`, in the same commit that changes the
table. A table without it has version 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction

from pipeline.errors import StoreError

_APP = "lagwise-schema"
_FIRST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change that a version makes to a table, which rows of earlier versions lack."""

    table: str
    version: int
    what: str
    """Description for the log."""
    computed: Mapping[str, pc.Expression] = field(default_factory=dict)
    """Columns of the new version by what they are made of; a column that is not named keeps its values."""
    dropped: frozenset[str] = frozenset()
    """Columns that the new version has not got."""


CHANGES: tuple[Change, ...] = (
    Change(
        table="recommendations",
        version=2,
        what="a folder for each day; what the next decision has to know is in plan_state",
        computed={"date": pc.field("created_at").cast(pa.date32())},
        dropped=frozenset({"state"}),
    ),
)
"""Oldest first."""


def known(name: str) -> int:
    """The newest version of a table's schema that this lagwise reads and writes."""
    return max((change.version for change in CHANGES if change.table == name), default=_FIRST)


def stated(handle: DeltaTable) -> int:
    """The version that a table has."""
    return handle.transaction_version(_APP) or _FIRST


def statement(name: str) -> Transaction:
    """Return the transaction of a commit after which a table has the newest version."""
    return Transaction(_APP, known(name))


def changes_since(name: str, present: int) -> tuple[Change, ...]:
    """Return the changes due for a table of version `present`, oldest first."""
    return tuple(change for change in CHANGES if change.table == name and change.version > present)


def refuse_newer(name: str, handle: DeltaTable) -> None:
    """Return if this lagwise can read the table.

    Raises:
        StoreError: A newer lagwise has made it what it is.
    """
    found = stated(handle)
    if found > known(name):
        raise StoreError(
            f"table {name} at {handle.table_uri} has schema version {found} of a newer lagwise, and this one "
            f"({version('lagwise')}) knows {known(name)}; use the lagwise of the driver, or restore a backup from "
            "before the upgrade (deploy/docs/upgrading.md)"
        )
