from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.operate.output import note
from pipeline.operate.sql import shell
from pipeline.operate.sql.answers import Answer
from pipeline.operate.sql.engine import StartError
from pipeline.operate.sql.runner import Runner
from pipeline.operate.sql.statements import refused
from pipeline.operate.sql.words import FailedError
from pipeline.tables.reading import Tables


class Told:
    """An engine that answers with the statement, or raises what stands for it."""

    names = ("partition_lag",)

    def __init__(self, root: Path, raising: dict[str, BaseException]) -> None:
        self.tables = Tables(str(root))
        self.raising = raising
        self.asked: list[str] = []

    def ask(self, statement: str, *, most: int | None = None) -> Answer:  # noqa: ARG002 - as the engine's
        self.asked.append(statement)
        if statement in self.raising:
            raise self.raising[statement]
        return Answer(rows=pa.table({"asked": [statement]}), is_cut=False)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, world: Any) -> Any:
    """Have these lines typed; the statements that were asked."""
    world.write("partition_lag", {})

    def _run(*lines: str | BaseException, raising: dict[str, BaseException] | None = None) -> list[str]:
        left = iter(lines)
        engine: Any = Told(world.root, raising or {})
        runner = Runner(engine, output="csv", before_statement=lambda: note("old?"))
        monkeypatch.setattr("builtins.input", lambda _prompt: _next(left))
        shell.run(runner)
        return engine.asked

    return _run


def nothing() -> None:
    pass


def _next(lines: Iterator[str | BaseException]) -> str:
    line = next(lines, None)
    if line is None:
        raise EOFError
    if isinstance(line, BaseException):
        raise line
    return line


def test_statement_goes_on_over_lines_until_its_semicolon(typed: Any) -> None:
    assert typed("SELECT 1", "", "  + 1; SELECT 2;", "SELECT 3") == ["SELECT 1\n\n  + 1", "SELECT 2"]


def test_commands_need_no_semicolon_and_no_spark(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("tables", "describe partition_lag;", "help") == []

    said = capsys.readouterr()
    assert "partition_lag,0," in said.out
    assert "column,type,meaning" in said.out
    assert "Ctrl-D" in said.err


def test_each_statement_warns_anew_if_rows_are_old_and_commands_do_not(
    typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("SELECT 1;", "tables", "SELECT 2;")

    assert capsys.readouterr().err.splitlines().count("old?") == 2


def test_quit_ends_the_shell(typed: Any) -> None:
    assert typed("SELECT 1;", "quit", "SELECT 2;") == ["SELECT 1"]


def test_ctrl_c_drops_what_was_typed_and_goes_on(typed: Any) -> None:
    assert typed("SELECT 1", KeyboardInterrupt(), "SELECT 2;") == ["SELECT 2"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "cancelled"),
        (FailedError("no such"), "no such"),
        (refused("DROP"), "DROP is refused"),
    ],
)
def test_statement_that_ends_badly_takes_the_rest_of_its_line_and_not_the_shell(
    typed: Any, capsys: pytest.CaptureFixture[str], error: BaseException, said: str
) -> None:
    assert typed("SELECT 1; SELECT 2;", "SELECT 3;", raising={"SELECT 1": error}) == ["SELECT 1", "SELECT 3"]
    assert said in capsys.readouterr().err


def test_spark_that_cannot_be_started_ends_the_shell(typed: Any) -> None:
    with pytest.raises(StartError):
        typed("SELECT 1;", "SELECT 2;", raising={"SELECT 1": StartError("no Spark")})


@pytest.mark.parametrize("error", [FailedError("no such"), refused("DROP")])
def test_script_ends_at_the_first_statement_that_fails_and_says_which_it_was(
    tmp_path: Path, error: PipelineError
) -> None:
    engine: Any = Told(tmp_path, {"b": error})

    with pytest.raises(type(error)) as raised:
        Runner(engine, output="csv", before_statement=nothing).run_all(["a", "b", "c"])
    assert str(raised.value) == f"statement 2 of 3: {error}"
    assert engine.asked == ["a", "b"]


def test_terminal_gets_no_more_than_a_thousand_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    engine: Any = Told(tmp_path, {})

    runners = [Runner(engine, output=output, before_statement=nothing) for output in ("table", "json", "csv")]

    assert [runner._most for runner in runners] == [1000, None, None]
