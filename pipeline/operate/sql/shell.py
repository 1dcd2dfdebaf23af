"""The prompt of `lagwise sql`: lines in, whole statements out, until Ctrl-D."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError, StoreError
from pipeline.operate.output import note
from pipeline.operate.sql import commands
from pipeline.operate.sql.engine import StartError
from pipeline.operate.sql.runner import Runner

_PROMPT, _MORE = "lagwise> ", "    ...> "
_LINES_KEPT = 1000
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", "VERSION AS OF"),
    *("TIMESTAMP AS OF", "DESCRIBE HISTORY", "tables", "describe", "help", "quit"),
)


def run(runner: Runner) -> None:
    """Ask for statements and answer them; a failed one does not end the shell.

    Raises:
        StartError: Spark cannot be started.
    """
    names = runner.engine.names
    with _line_editing(list(_completions(runner))):
        typed = ""
        while True:
            try:
                line = input(_MORE if typed else _PROMPT)
                typed = _answer(runner, typed, line, names)
            except KeyboardInterrupt:
                typed = ""
                note("")
            except EOFError:
                note("")
                return


def _answer(runner: Runner, typed: str, line: str, names: Sequence[str]) -> str:
    """Answer what is complete with this line, and return the rest.

    Raises:
        StartError: Spark cannot be started.
        EOFError: The user ends the shell.
    """
    ready, rest = commands.added(typed, line, names)
    if ready:
        _remember(f"{typed}\n{line}" if typed else line)
    for statement in ready:
        if statement.lower() in commands.QUIT:
            raise EOFError
        try:
            found = runner.run(statement)
        except StartError:
            raise
        except PipelineError as error:
            # What follows was written in the belief that this would go well.
            note(str(error))
            return ""
        except KeyboardInterrupt:
            note("cancelled")
            return ""
        if not commands.is_command(statement, names):
            note("1 row" if found == 1 else f"{found} rows")
    return rest


def _completions(runner: Runner) -> Iterator[str]:
    """Words that Tab completes."""
    yield from _WORDS
    engine = runner.engine
    yield from engine.names
    for name in engine.names:
        try:
            yield from commands.columns_of(engine.tables, name).names
        except StoreError:
            # The statement that asks for it will say why.
            continue


@contextmanager
def _line_editing(words: Sequence[str]) -> Iterator[None]:
    """Edit lines with Tab and a lasting history, if this Python has readline."""
    readline = _readline()
    if readline is None:
        yield
        return
    known = sorted(set(words))
    file = _history_file()
    readline.set_completer(lambda text, state: _match(known, text, state))
    readline.set_completer_delims(" \t\n,;()=<>.")
    readline.parse_and_bind("tab: complete")
    readline.set_auto_history(False)
    try:
        readline.read_history_file(file)
    except OSError:
        # There is none yet, or it is of no use.
        readline.clear_history()
    try:
        yield
    finally:
        _write_history(readline, file)


def _match(words: Sequence[str], text: str, state: int) -> str | None:
    fitting = [word for word in words if word.lower().startswith(text.lower())]
    return fitting[state] if state < len(fitting) else None


def _readline() -> Any:
    if not sys.stdin.isatty():
        return None
    try:
        return import_module("readline")
    except ModuleNotFoundError:
        return None


def _remember(typed: str) -> None:
    readline = _readline()
    if readline is not None:
        # The history has lines; a comment would swallow all that follows it in one.
        readline.add_history(" ".join(typed.split()) if "--" not in typed else typed)


def _history_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "lagwise" / "sql_history"


def _write_history(readline: Any, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Statements may hold names that are nobody else's business.
        file.touch(mode=0o600)
        readline.set_history_length(_LINES_KEPT)
        readline.write_history_file(file)
    except OSError as error:
        note(f"the history cannot be kept in {file}: {error.strerror}")
