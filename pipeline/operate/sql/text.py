"""Answers as text: a table, records one below the other if the terminal is too narrow, or the lines of a plan."""

import json
import sys
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from rich.console import Console

from pipeline.operate.output import Column, Format, Row, iterate, json_value, plain, show

_LEAST, _DECIMALS = 0.001, 3
_GAP = 2
"""Separator of two columns."""


def show_rows(rows: pa.Table, *, output: Format) -> None:
    """Print the rows to stdout; column names are unique."""
    columns = [_column(field) for field in rows.schema]
    console = Console()
    if output != "table":
        show(rows, columns, output=output)
    elif (text := _lines_of_one_cell(rows)) is not None:
        sys.stdout.write("".join(f"{plain(line)}\n" for line in text))
    elif console.is_terminal and _width(rows, columns) > console.width:
        _show_records(rows, columns)
    else:
        show(rows, columns, output=output)


def _column(field: pa.Field) -> Column:
    kind = field.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return Column(
        header=plain(field.name), name=field.name, cell=partial(_cell, field.name), is_number=is_number
    )


def _cell(name: str, row: Row) -> str:
    return cell(row[name])


def cell(value: Any) -> str:
    """Format a value: times to the millisecond if they have one, numbers to three decimals, lists as JSON."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, datetime) and value.microsecond:
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return plain(json.dumps(value, default=json_value, ensure_ascii=False))
    return plain(value)


def _number(value: float) -> str:
    if value and abs(value) < _LEAST:
        return f"{value:.{_DECIMALS}g}"
    return f"{value:.{_DECIMALS}f}".rstrip("0").rstrip(".")


def _lines_of_one_cell(rows: pa.Table) -> list[str] | None:
    """The text of a plan, or of SHOW CREATE TABLE; None for any other answer."""
    if (rows.num_rows, rows.num_columns) != (1, 1):
        return None
    (value,) = rows.column(0).to_pylist()
    return value.splitlines() if isinstance(value, str) and "\n" in value else None


def _width(rows: pa.Table, columns: list[Column]) -> int:
    widths = {column.name: len(column.header) for column in columns}
    for row in iterate(rows):
        for name, value in row.items():
            widths[name] = max(widths[name], len(cell(value)))
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _show_records(rows: pa.Table, columns: list[Column]) -> None:
    width = max(len(column.header) for column in columns)
    for number, row in enumerate(iterate(rows), start=1):
        sys.stdout.write(f"-- {number} --\n")
        sys.stdout.writelines(
            f"{column.header.ljust(width)}  {cell(row[column.name])}\n" for column in columns
        )
