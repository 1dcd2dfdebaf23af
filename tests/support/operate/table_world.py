"""Tables of which a test names only the columns it is about, and the command that reads them."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from typer.testing import CliRunner, Result

from pipeline.operate.cli.app import app
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
"""Time of the rows, unless they say otherwise."""

_SCHEMAS = {table.name: arrow_schema(table.schema) for table in TABLES}
_DEFAULTS: dict[str, Any] = {
    "cluster": "c",
    "group_id": "billing",
    "topic": "invoices",
    "partition": 0,
    "offset": 0,
    "status": "OK",
    "assigned": False,
    "provisional": False,
    "confirmed": True,
    "group_type": "classic",
    "decision": "publish",
    "kind": "offset_commit",
    "reason": "because",
    "updated_at": NOON,
    "created_at": NOON,
    "batch_id": 1,
}

_OWNER = {"owner": "host/7/1", "term": 3, "acquired_at": NOON}


class World:
    """A folder with tables, and the command to read them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(
        self, table: str, *rows: dict[str, Any], mode: Any = "append", stamp: Stamp | None = None
    ) -> None:
        """Append `rows`; what a row leaves out is a default or null."""
        schema = _SCHEMAS[table]
        full = [{**_DEFAULTS, "date": row.get("updated_at", NOON).date(), **row} for row in rows]
        metadata = {"userMetadata": stamp.to_json()} if stamp else {}
        write_deltalake(
            self.root / table,
            pa.Table.from_pylist(full, schema=schema),
            mode=mode,
            commit_properties=CommitProperties(custom_metadata=metadata),
        )

    def replace(self, table: str, *rows: dict[str, Any], stamp: Stamp | None = None) -> None:
        """Make these the rows of `table`, as a batch with this stamp does."""
        self.write(table, *rows, mode="overwrite", stamp=stamp)

    def complete(self) -> None:
        """Make all tables that are not there yet, without rows but for the owner's."""
        for name in _SCHEMAS:
            if not (self.root / name).exists():
                self.write(name, *([_OWNER] if name == "planner_state" else []))

    def as_of_a_newer_lagwise(self, table: str) -> None:
        """Give the table a schema version that no lagwise knows yet."""
        handle = DeltaTable(str(self.root / table))
        commit = CommitProperties(app_transactions=[Transaction("lagwise-schema", 99)])
        handle.create_write_transaction([], "append", handle.schema(), commit_properties=commit)

    def run(self, *arguments: str, **options: Any) -> Result:
        """The command with these tables."""
        arguments = (*arguments, "--tables", str(self.root))
        return CliRunner().invoke(app, arguments, catch_exceptions=False, **options)

    def lines(self, *arguments: str) -> list[list[str]]:
        """Text output as words, line by line, without the heading; each cell must be one word."""
        return [line.split() for line in self.run(*arguments).stdout.splitlines()[1:]]
