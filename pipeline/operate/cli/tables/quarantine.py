"""`lagwise quarantine`: records that could not be read."""

from typing import Annotated

import pyarrow.compute as pc
import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.output import (
    Column,
    FormatOption,
    WideOption,
    end_without,
    names,
    plain,
    progress,
    show,
)
from pipeline.tables.reading import matches

_BYTES_SHOWN = 24
_NEWEST_FIRST = [
    ("updated_at", "descending"),
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("offset", "descending"),
    ("cluster", "ascending"),
]


def _cut(data: bytes | None) -> str:
    if data is None or len(data) <= _BYTES_SHOWN:
        return plain(data)
    return f"{data[:_BYTES_SHOWN].hex()}... ({len(data)} bytes)"


_COLUMNS = (
    Column(header="UPDATED-AT", name="updated_at"),
    Column(header="TOPIC", name="topic"),
    Column(header="PARTITION", name="partition", is_number=True),
    Column(header="OFFSET", name="offset", is_number=True),
    Column(header="KIND", name="kind"),
    Column(header="REASON", name="reason"),
    Column(header="KEY", name="key", cell=lambda row: _cut(row["key"])),
    Column(header="VALUE", name="value", cell=lambda row: _cut(row["value"])),
    Column(header="TIMESTAMP", name="timestamp", is_wide=True),
    Column(header="BATCH", name="batch_id", is_number=True, is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)


def quarantine(
    *,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="GLOB", help="Only these kinds; repeatable.")
    ] = None,
    last: Annotated[int, typer.Option("--last", "-n", metavar="N", min=1, help="The newest N.")] = 50,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Records that could not be read, and why, newest first.

    Example: lagwise quarantine --last 5 -o json

    Bytes are hexadecimal; the table shows the first 24, json and csv show all. A record's time after the year 9999
    is shown as unknown.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    with progress("reading quarantine"):
        rows = find(tables, config).tables.read(
            "quarantine", columns=names(_COLUMNS), where=matches("kind", kind or ())
        )
    newest = rows.take(pc.sort_indices(rows, sort_keys=_NEWEST_FIRST)[:last])
    show(newest, _COLUMNS, output=output, wide=wide)
    end_without(newest, "no quarantined record matches")
