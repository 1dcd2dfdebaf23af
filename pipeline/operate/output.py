"""Output of rows: aligned text for people, JSON and CSV for programs.

On a terminal the text is a table in colour; in a pipe it is plain and never cut. JSON is one array of objects
and CSV has a header, both under the names of the table's columns, with null as null or as nothing. CSV is raw in
a pipe or a file, quoted where it must be; on a terminal no name can steer it.
"""

import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from io import TextIOWrapper
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.operate.statuses import STATUSES

Row = dict[str, Any]
Format = Literal["table", "json", "csv"]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--output",
        "-o",
        help="Text for people, json or csv for programs. csv escapes control characters of names on a terminal only.",
    ),
]
WideOption = Annotated[
    bool, typer.Option("--wide", "-w", help="More columns; json and csv always have them.")
]

NONE = "-"
_TO_BE_QUOTED = frozenset(',"\r\n')

# Laying out a terminal table costs about a millisecond per row.
_MOST_ROWS_IN_COLOUR = 500
_PROGRESS_AFTER_S = 2.0
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_COLOURS = {"good": "green", "fair": "yellow", "bad": "red", "none": "dim"}
STYLES = {
    **{status: _COLOURS[one.level] for status, one in STATUSES.items()},
    "publish": "green",
    "abstain": "yellow",
    "awaiting_approval": "yellow",
}
"""Colour of a status or decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of output: its heading in text, its name in JSON and CSV, and how a value reads."""

    header: str
    name: str
    cell: Callable[[Row], str] | None = None
    """Text of the cell from the whole row; None prints the value of `name`."""
    is_number: bool = False
    is_wide: bool = False


def names(columns: Sequence[Column]) -> list[str]:
    """Names of the table columns that `columns` print, without repetition."""
    return list(dict.fromkeys(column.name for column in columns))


def show(
    rows: pa.Table | Sequence[Row], columns: Sequence[Column], *, output: Format, wide: bool = False
) -> None:
    """Print `rows` to stdout in the order they are in."""
    if output == "table":
        _show_text(_each(rows), [column for column in columns if wide or not column.is_wide])
        return
    wanted = names(columns)
    chosen = ({name: row[name] for name in wanted} for row in _each(rows, wanted))
    if output == "json":
        _show_json(chosen)
    else:
        _show_csv(wanted, chosen)


def end_without(rows: Sized, remark: str) -> None:
    """Print the remark on stderr and end with status 1 if there are no rows."""
    if not len(rows):
        note(remark)
        raise typer.Exit(1)


def _each(rows: pa.Table | Sequence[Row], wanted: Sequence[str] | None = None) -> Iterable[Row]:
    """The rows as dictionaries. Only the wanted columns of a table are converted."""
    if isinstance(rows, pa.Table):
        return iterate(rows if wanted is None else rows.select(wanted))
    return rows


def note(text: str) -> None:
    """Print a remark on stderr, so that a pipe holds rows only."""
    typer.echo(text, err=True)


def plain(value: Any) -> str:
    """Format a value for a cell: `-` for null, times in UTC to the second, numbers to one decimal.

    Clients choose the names of groups, topics and clients, so control characters are escaped: no name can control the
    terminal.
    """
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return _printable(value.hex() if isinstance(value, bytes) else str(value))


def _printable(text: str) -> str:
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def partition_text(row: Row) -> str:
    """Topic and partition of a row, as Kafka's tools write them."""
    return f"{plain(row['topic'])}-{row['partition']}"


def span_text(seconds: float, *, decimals: int = 0) -> str:
    """A span of time in the largest unit that it contains at least twice."""
    size, unit = next((one for one in _SPANS if seconds >= 2 * one[0]), (1, "s"))
    return f"{seconds / size:.{decimals}f} {unit}"


def iterate(rows: pa.Table) -> Iterator[Row]:
    """`rows` as dictionaries, a batch at a time; maps become dictionaries, and times that Python lacks null."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "us":
            rows = rows.set_column(number, field, _representable(rows[field.name]))
    for batch in rows.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist(maps_as_pydicts="strict")


def _representable(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The times, null where they are outside of the years 1 to 9999: producers set those of their records."""
    least, most = (
        pa.scalar(bound, pa.timestamp("us", "UTC")).cast(times.type)
        for bound in (datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc))
    )
    is_kept = pc.and_(pc.greater_equal(times, least), pc.less_equal(times, most))
    return pc.if_else(is_kept, times, pa.scalar(None, times.type))


@contextmanager
def progress(text: str, *, after_s: float = _PROGRESS_AFTER_S) -> Iterator[None]:
    """Show `text` and a spinner on stderr while the body runs, if it takes longer than two seconds, or `after_s`."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(text)
    timer = threading.Timer(after_s, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        status.stop()


def json_value(value: Any) -> Any:
    """Values for which JSON has no type: times as ISO 8601 in UTC, spans in seconds, bytes as hexadecimal digits.

    A decimal without decimal places is exact, any other is the nearest double.
    """
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    return value.isoformat() if isinstance(value, date) else bytes(value).hex()


def json_text(value: Any) -> str:
    """A value as JSON, with null for NaN and infinity, which JSON lacks."""
    try:
        return json.dumps(value, default=json_value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=json_value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show_json(rows: Iterable[Row]) -> None:
    separator = "["
    for row in rows:
        sys.stdout.write(f"{separator}\n  {json_text(row)}")
        separator = ","
    sys.stdout.write("\n]\n" if separator == "," else "[]\n")


def _show_csv(header: Sequence[str], rows: Iterable[Row]) -> None:
    is_terminal = sys.stdout.isatty()
    cell = _csv_cell_on_terminal if is_terminal else _csv_cell
    if isinstance(sys.stdout, TextIOWrapper) and not is_terminal:
        # A program would take the escape of a character that the encoding lacks for the name.
        sys.stdout.reconfigure(errors="strict")
    sys.stdout.write(_csv_line(header))
    sys.stdout.writelines(_csv_line(map(cell, row.values())) for row in rows)


def _csv_line(cells: Iterable[Any]) -> str:
    # The writer of Python 3.10 refuses a name with a NUL character.
    return ",".join(_quoted("" if cell is None else str(cell)) for cell in cells) + "\n"


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if _TO_BE_QUOTED & set(text) else text


def _csv_cell_on_terminal(value: Any) -> Any:
    return _printable(value) if isinstance(value, str) else _csv_cell(value)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return json.dumps(value, default=json_value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json_value(value) if isinstance(value, date | timedelta | bytes) else value


def _show_text(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    lines = [
        [column.cell(row) if column.cell else plain(row[column.name]) for column in columns] for row in rows
    ]
    console = Console(markup=False, emoji=False, highlight=False)
    if console.is_terminal and len(lines) <= _MOST_ROWS_IN_COLOUR:
        console.print(_coloured(columns, lines))
    else:
        sys.stdout.writelines(f"{line}\n" for line in aligned(columns, lines))


def _coloured(columns: Sequence[Column], lines: Iterable[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.header, justify="right" if column.is_number else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(cell, style=STYLES.get(cell.rstrip("*"), "")) for cell in line))
    return table


def aligned(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The headers and lines, with each column as wide as its widest cell and numbers aligned right."""
    headers = [column.header for column in columns]
    widths = [max(map(len, cells)) for cells in zip(headers, *lines, strict=True)]
    for line in (headers, *lines):
        cells = (
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        yield "  ".join(cells).rstrip()
