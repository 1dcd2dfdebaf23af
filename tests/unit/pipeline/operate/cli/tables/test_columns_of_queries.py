"""Columns that the queries in tables.md use are in what the command writes for programs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.tables.schemas import TABLES

_PAGE = Path(__file__).parents[6].joinpath("deploy", "docs", "tables.md").read_text(encoding="utf-8")
_QUERIES = re.findall(r"```sql\n(.*?)```", _PAGE, re.DOTALL)
_COMMANDS = {"partition_lag": ["lag"], "lag_history": ["history", "--since", "2026-01-31"]}


def columns_used(query: str) -> tuple[str, set[str]]:
    """The table, and those of its columns that the query names."""
    (table,) = re.findall(r"delta_scan\('[^']*/(\w+)'\)", query)
    schema = next(each.schema for each in TABLES if each.name == table)
    return table, set(re.findall(r"\w+", query)) & set(schema.fieldNames())


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("output", ["json", "csv"])
def test_programs_get_the_columns_of_the_queries(world: Any, query: str, output: str) -> None:
    table, used = columns_used(query)
    world.write(table, {})

    text = world.run(*_COMMANDS[table], "-o", output).stdout

    assert used
    assert used <= set(json.loads(text)[0] if output == "json" else text.splitlines()[0].split(","))


def test_every_query_of_the_page_is_seen() -> None:
    assert len(_QUERIES) == _PAGE.count("delta_scan(")
