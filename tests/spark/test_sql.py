"""`lagwise sql` with Spark, over tables that lagwise has written."""

import json
import os
import re
import shlex
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from pipeline.operate.cli.app import app
from tests.support.operate.ask_sql import own_catalog
from tests.support.operate.sql_recipes import PAGE, QUERIES, ROOT, written
from tests.support.waiting import wait_until

_LONG_AGO_S = 1_700_000_000
_COMMANDS = [
    line.strip().removeprefix("$ ")
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.strip().removeprefix("$ ").startswith("lagwise sql")
]
"""Of the page, each on a line of its own."""


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # The name of the folder needs care wherever it goes.
    folder = tmp_path_factory.mktemp("the tables' own")
    written(folder)
    with own_catalog(spark):
        yield folder


def _ask(root: Path, *arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(
        app, ["sql", "--tables", str(root), *arguments], catch_exceptions=False, **options
    )


def _rows(root: Path, statement: str) -> Any:
    return json.loads(_ask(root, "-o", "json", statement).stdout)


def _files(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_tables_have_their_names_and_every_type_is_json(root: Path) -> None:
    rows = _rows(
        root,
        "SELECT group_id, sum(lag) AS lag, max(updated_at) AS at, max(updated_at) - max(updated_at) AS ago, "
        "1.5 AS d, INTERVAL '2' YEAR AS y, TIMESTAMP_NTZ '2026-01-31 03:00:00' AS ntz, X'00ff' AS b, "
        "map(1, DATE '2026-01-31') AS m, lag(1) OVER (ORDER BY group_id) AS `a.b`, 1 AS d "
        "FROM partition_lag WHERE group_id = 'slow' GROUP BY group_id",
    )

    assert rows == [
        {
            "group_id": "slow",
            "lag": 900,
            "at": "2026-01-21T12:00:00.000000Z",
            "ago": 0.0,
            "d": 1.5,
            "y": "INTERVAL '2' YEAR",
            "ntz": "2026-01-31 03:00:00",
            "b": "00ff",
            "m": {"1": "2026-01-31"},
            "a.b": None,
            "d_2": 1,
        }
    ]


def test_table_is_read_as_it_was(root: Path) -> None:
    assert _rows(root, "SELECT count(*) AS n FROM partition_lag VERSION AS OF 0") == [{"n": 0}]
    assert _rows(root, "SELECT count(*) AS n FROM partition_lag VERSION AS OF 1") == [{"n": 10}]


@pytest.mark.parametrize(
    "when", ["VERSION AS OF 99", "TIMESTAMP AS OF '2001-01-01'", "TIMESTAMP AS OF '2999-01-01'"]
)
def test_version_that_is_not_there_has_those_that_are(root: Path, when: str) -> None:
    result = _ask(root, f"SELECT * FROM partition_lag {when}")  # noqa: S608 - the test's own words

    assert result.exit_code == 1
    assert "of partition_lag the oldest version that is there is 0, of 20" in result.stderr


def test_version_whose_files_are_gone_has_the_oldest_that_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = written(tmp_path)
    rows = store.rows("partition_lag", ["group_id"])
    assert rows
    for file in (tmp_path / "partition_lag").glob("*.parquet"):
        file.unlink()

    with own_catalog(spark):
        result = _ask(tmp_path, "SELECT * FROM partition_lag VERSION AS OF 1")

    assert result.exit_code == 1
    assert "of partition_lag the oldest version that is there is" in result.stderr


def test_version_past_its_retention_is_read_while_its_files_are_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A driver that has stopped removes none, and its last hours are what is asked about."""
    written(tmp_path)
    for commit in sorted((tmp_path / "partition_lag" / "_delta_log").glob("*.json")):
        os.utime(commit, (_LONG_AGO_S + int(commit.stem), _LONG_AGO_S + int(commit.stem)))

    with own_catalog(spark):
        assert _rows(tmp_path, "SELECT count(*) AS n FROM partition_lag VERSION AS OF 0") == [{"n": 0}]


def test_unknown_table_has_the_tables_there_are(root: Path) -> None:
    result = _ask(root, "SELECT * FROM lag_histori")

    assert result.exit_code == 1
    assert result.stderr.startswith(
        "lagwise: there is no table lag_histori (did you mean lag_history?); the tables are acks, consumer_groups,"
    )
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "statement",
    [
        "WITH a AS (SELECT * FROM acks) INSERT INTO acks SELECT * FROM a",
        "FROM acks INSERT INTO acks SELECT *",
        "WITH a AS (SELECT TRANSFORM (id) USING 'touch /tmp/lagwise-was-here' FROM acks) SELECT * FROM a",
        "DELETE FROM acks",
        "FROM (VALUES (1)) AS t(x) INSERT OVERWRITE DIRECTORY '{root}/acks' USING csv SELECT x",
        "WITH a AS (SELECT 1 AS x) INSERT OVERWRITE DIRECTORY '{root}/acks' USING csv SELECT x FROM a",
        "/* /* */ */ EXECUTE IMMEDIATE 'DROP TABLE acks'",
        "/* /* */ */ EXECUTE IMMEDIATE 'ALTER TABLE acks SET TBLPROPERTIES (''x.y''=''z'')'",
    ],
)
def test_what_writes_is_refused_and_changes_nothing(root: Path, statement: str) -> None:
    before = _files(root)

    result = _ask(root, statement.replace("{root}", str(root).replace("'", "\\'")))

    assert result.exit_code == 1
    assert "is refused, and nothing was run" in result.stderr
    assert _files(root) == before


def test_reading_leaves_the_tables_as_they_were(root: Path) -> None:
    before = _files(root)

    assert _ask(root, "SHOW TABLES; DESCRIBE HISTORY acks; EXPLAIN SELECT * FROM acks").exit_code == 0
    assert _files(root) == before


def test_script_runs_to_the_statement_that_fails(root: Path) -> None:
    result = _ask(
        root, "-o", "csv", input="-- a script\nSELECT 1 AS a;\ntables;\nSELECT nothing;\nSELECT 2 AS b;\n"
    )

    assert result.exit_code == 1
    assert result.stdout.startswith("a\n1\ntable,version,written_at\n")
    assert "b" not in result.stdout.splitlines()
    assert "statement 3 of 4: " in result.stderr


def test_no_row_is_status_1(root: Path) -> None:
    result = _ask(root, "SELECT * FROM acks")

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, "no rows")


def test_empty_statement_is_wrong_usage(root: Path) -> None:
    assert _ask(root, " -- nothing").exit_code == 2


def test_ctrl_c_ends_a_statement_that_runs(root: Path, spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()

    def _interrupt() -> None:
        wait_until(tracker.getActiveJobsIds, what="the statement runs")
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=_interrupt).start()
    result = _ask(root, "SELECT sum(id % 7) FROM range(100000000000)")

    assert result.exit_code == 130
    wait_until(lambda: not tracker.getActiveJobsIds(), what="nothing runs any more")


@pytest.mark.parametrize("title", ["Who is behind most?", "Which partitions are near retention?"])
def test_queries_of_the_page_run_as_they_stand(root: Path, title: str) -> None:
    assert _ask(root, QUERIES[title]).exit_code == 0


@pytest.mark.parametrize("command", _COMMANDS)
def test_commands_of_the_page_run(root: Path, command: str, tmp_path: Path) -> None:
    script = tmp_path / "questions.sql"
    script.write_text("SELECT 1;\n", encoding="utf-8")
    words = [word.replace(ROOT, str(root)) for word in shlex.split(command)]
    given = script.read_text(encoding="utf-8") if "<" in words else None
    result = _ask(root, *words[2 : words.index("<") if "<" in words else None], input=given)

    assert result.exit_code == 0, result.stderr
    assert result.stdout


def test_page_has_commands() -> None:
    assert len(_COMMANDS) == PAGE.count("lagwise sql ")
