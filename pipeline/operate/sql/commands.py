"""Commands in addition to SQL, answered without Spark: the tables, and their columns with their meaning."""

import json
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from pipeline.operate.sql import statements
from pipeline.tables.reading import Tables

HELP: Final = """\
Statements of Spark SQL end with ; and only read. Times are UTC.
  tables, \\d                   the tables, with their newest versions
  describe NAME, \\d NAME       columns of a table, and what they mean
  help, \\?                     this
  quit, \\q, Ctrl-D             leave
Ctrl-C ends a statement, or drops the one that is being typed. Tab completes names of tables and columns.
As it was:
  DESCRIBE HISTORY partition_lag;
  SELECT group_id, sum(lag) FROM partition_lag VERSION AS OF 12 GROUP BY group_id;
  SELECT group_id, sum(lag) FROM partition_lag TIMESTAMP AS OF '2026-01-31 03:00:00' GROUP BY group_id;
Versions go after tables.retention_hours. lag_history keeps what was before:
  SELECT * FROM lag_history WHERE date = DATE '2026-01-31' AND group_id = 'billing' ORDER BY updated_at;
"""
QUIT: Final = frozenset({"quit", "exit", "\\q"})

_HELP = frozenset({"help", "\\?", "\\h"})
_TABLES = frozenset({"tables", "\\d", "\\dt"})
_DESCRIBE = re.compile(r"(?:describe|desc|\\d)\s+`?(\w+)`?", re.IGNORECASE)


def is_command(text: str, names: Sequence[str]) -> bool:
    """Return whether the text is a command and not SQL, so that it needs no semicolon."""
    word = text.strip().lower()
    return word in QUIT | _HELP | _TABLES or described(text, names) is not None


def cut(typed: str, names: Sequence[str]) -> tuple[list[str], str]:
    """Split the input into complete statements or commands and the rest; white space and comments count as empty."""
    ready, rest = statements.cut(f"{typed};" if is_command(typed, names) else typed)
    return ready, "" if statements.is_empty(rest) else rest.lstrip()


def added(typed: str, line: str, names: Sequence[str]) -> tuple[list[str], str]:
    """Add a line to an incomplete statement, and split as `cut`; a command is one line."""
    text = f"{typed}\n{line}" if typed else line
    if typed and ";" not in line and "*/" not in line:
        # Nothing ends here. Pasted statements have thousands of lines, which are not scanned again for each.
        return [], text
    return cut(text, names)


def all_of(script: str, names: Sequence[str]) -> list[str]:
    """Return all statements and commands of a script; a command is a line, and the last statement may be open."""
    found, typed = list[str](), ""
    for line in script.splitlines():
        ready, typed = added(typed, line, names)
        found += ready
    return [*found, typed.strip()] if typed else found


def described(text: str, names: Sequence[str]) -> str | None:
    """The table of `describe NAME`; None for all that is left to Spark, such as `DESCRIBE HISTORY NAME`."""
    found = _DESCRIBE.fullmatch(text.strip())
    return found[1].lower() if found and found[1].lower() in names else None


def rows_of(text: str, tables: Tables, names: Sequence[str]) -> pa.Table | None:
    """Return the rows of a command; None for the help.

    Raises:
        StoreError: A table cannot be read.
    """
    if text.strip().lower() in _HELP:
        return None
    name = described(text, names)
    return _list(tables, names) if name is None else _columns(tables, name)


def columns_of(tables: Tables, name: str) -> StructType:
    """Columns of a table, as its log has them.

    Raises:
        StoreError: It cannot be read.
    """
    return StructType.fromJson(json.loads(tables.open(name).handle.schema().to_json()))


def _list(tables: Tables, names: Sequence[str]) -> pa.Table:
    return pa.table(
        {
            "table": list(names),
            "version": [tables.open(name).version for name in names],
            "written_at": [tables.written_at(name) for name in names],
        }
    )


def _columns(tables: Tables, name: str) -> pa.Table:
    columns = columns_of(tables, name)
    return pa.table(
        {
            "column": columns.names,
            "type": [field.dataType.simpleString() for field in columns],
            "meaning": pa.array([field.metadata.get("comment") for field in columns], pa.string()),
        }
    )
