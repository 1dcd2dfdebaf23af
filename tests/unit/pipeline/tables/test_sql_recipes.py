"""The queries of `deploy/docs/sql.md` answer right in DuckDB, and use columns that the page calls stable."""

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.tables.schemas import BY_NAME
from tests.support.operate.sql_recipes import ANSWERS, OPENINGS, PAGE, QUERIES, ROOT, written

_STABLE = {
    name: set(re.findall(r"`(\w+)`", columns))
    for name, columns in re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
}
_LIKE = {"lag_history": "partition_lag", "group_history": "consumer_groups", "plan_state": "recommendations"}
"""Tables whose stable columns are those of another one, and more."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tables")
    written(folder)
    names: dict[str, Any] = {}
    exec(OPENINGS[0].replace(ROOT, str(folder)), names)  # noqa: S102 - the page's own lines
    return names["db"]


def test_every_query_of_the_page_has_an_answer() -> None:
    assert QUERIES.keys() == ANSWERS.keys()
    assert len(QUERIES) == PAGE.count("```sql")


@pytest.mark.parametrize("title", ANSWERS)
def test_duckdb_answers(db: Any, title: str) -> None:
    assert db.execute(QUERIES[title]).fetchall() == ANSWERS[title]


@pytest.mark.parametrize("name", _STABLE)
def test_stable_columns_exist(name: str) -> None:
    schema = BY_NAME[name].schema
    inner = {one for field in schema for one in re.findall(r'"name":"(\w+)"', field.json())}

    assert _STABLE[name] - {"date", "created_at", *_LIKE.values()} <= inner


@pytest.mark.parametrize("title", QUERIES)
def test_query_uses_stable_columns_only(title: str) -> None:
    words = set(re.findall(r"\w+", QUERIES[title]))
    used = words & BY_NAME.keys()
    known = {field.name for name in used for field in BY_NAME[name].schema}
    stable = {one for name in used for one in _STABLE[name] | _STABLE.get(_LIKE.get(name, ""), set())}

    assert used
    assert (words & known) - stable - used == set()


def test_page_lists_every_table_that_people_read() -> None:
    assert BY_NAME.keys() - _STABLE.keys() == {"planner_state", "member_rates"}


def test_pages_of_two_engines_name_the_same_tables() -> None:
    duckdb, spark = (set(re.findall(r'"(\w+)"', text)) & BY_NAME.keys() for text in OPENINGS)

    assert duckdb == spark
    assert (
        duckdb >= {name for query in QUERIES.values() for name in re.findall(r"\w+", query)} & BY_NAME.keys()
    )


def test_tables_asked_are_below_a_folder_to_be_replaced() -> None:
    assert all(ROOT in text and not Path(ROOT).exists() for text in OPENINGS)
