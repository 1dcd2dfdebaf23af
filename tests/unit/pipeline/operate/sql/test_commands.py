from typing import Any

import pytest

from pipeline.operate.sql import statements
from pipeline.operate.sql.commands import all_of, is_command, rows_of
from pipeline.tables.reading import Tables

_NAMES = ("acks", "partition_lag")


@pytest.mark.parametrize(
    "text", ["tables", "\\d", "HELP", "\\?", "describe acks", "\\d acks", " DESC Acks ", "quit"]
)
def test_command_needs_no_semicolon(text: str) -> None:
    assert is_command(text, _NAMES)


@pytest.mark.parametrize(
    "text", ["describe history acks", "describe nothing", "describe", "tables x", "SELECT 1", ""]
)
def test_everything_else_is_sql(text: str) -> None:
    assert not is_command(text, _NAMES)


def test_tables_are_listed_with_their_newest_versions(world: Any) -> None:
    world.write("acks")
    world.write("partition_lag", {})
    world.write("partition_lag", {})

    rows = rows_of("tables", Tables(str(world.root)), _NAMES)

    assert rows.select(["table", "version"]).to_pylist() == [
        {"table": "acks", "version": 0},
        {"table": "partition_lag", "version": 1},
    ]
    assert rows["written_at"].null_count == 0


def test_columns_are_described_as_the_table_itself_describes_them(world: Any) -> None:
    world.complete()

    rows = rows_of("describe acks", Tables(str(world.root)), _NAMES)

    assert {"column": "kind", "type": "string"}.items() <= rows.to_pylist()[2].items()
    assert rows.column_names == ["column", "type", "meaning"]


def test_help_has_no_rows(world: Any) -> None:
    assert rows_of("help", Tables(str(world.root)), _NAMES) is None


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("-- first\nSELECT 1;;\n -- none\n;SELECT 2\n", ["SELECT 1", "SELECT 2"]),
        ("-- a\n/* b */ ;\n", []),
        ("\\d acks\nSELECT 1;\ntables\nhelp", ["\\d acks", "SELECT 1", "tables", "help"]),
        ("SELECT '\ntables\n';", ["SELECT '\ntables\n'"]),
        ("/* not now\nSELECT 2;\n*/\ntables\nSELECT 1;", ["tables", "SELECT 1"]),
        ("/* a /* b\n*/ ;\n*/ SELECT 1;", ["/* a /* b\n*/ ;\n*/ SELECT 1"]),
    ],
)
def test_script_has_statements_to_their_semicolons_and_commands_on_lines_of_their_own(
    script: str, found: list[str]
) -> None:
    assert all_of(script, _NAMES) == found


def test_long_statement_is_not_scanned_again_for_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "SELECT lag FROM partition_lag WHERE group_id IN (\n" + "'a',\n" * 500 + "'b');"
    scanned: list[str] = []
    cut = statements.cut
    monkeypatch.setattr(statements, "cut", lambda text: (scanned.append(text), cut(text))[1])

    assert all_of(script, _NAMES) == [script.removesuffix(";")]
    assert sum(map(len, scanned)) < 2 * len(script)
