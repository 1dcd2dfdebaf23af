"""Runs statements and commands one after another, and prints their answers."""

import sys
from collections.abc import Callable, Iterable

from pipeline.errors import PipelineError
from pipeline.operate.output import Format, note
from pipeline.operate.sql import commands
from pipeline.operate.sql.answers import Answer
from pipeline.operate.sql.engine import Engine
from pipeline.operate.sql.text import show_rows

_MOST_ON_TERMINAL = 1000
"""Rows; more would scroll away unread, and may be millions."""


class Runner:
    """Answers to stdout, everything else to stderr."""

    def __init__(self, engine: Engine, *, output: Format, before_statement: Callable[[], object]) -> None:
        """Ask nothing yet.

        Args:
            engine: Answers statements.
            output: Format of the answers.
            before_statement: Warns if what a statement reads is old: a prompt may be open for days.
        """
        self.engine = engine
        self.output = output
        self._before_statement = before_statement
        self._most = _MOST_ON_TERMINAL if output == "table" and sys.stdout.isatty() else None

    def run(self, statement: str) -> int:
        """Answer a statement without its semicolon, or a command; return the number of printed rows.

        Raises:
            PipelineError: It is refused, or fails.
            KeyboardInterrupt: It was cancelled.
        """
        engine = self.engine
        if not commands.is_command(statement, engine.names):
            self._before_statement()
            return self._show(engine.ask(statement, most=self._most))
        rows = commands.rows_of(statement, engine.tables, engine.names)
        if rows is None:
            note(commands.HELP.rstrip())
            return 1
        return self._show(Answer(rows=rows, is_cut=False))

    def run_all(self, statements: Iterable[str]) -> int:
        """Answer statements until one fails; return the number of printed rows.

        Raises:
            PipelineError: As `run`; the message says which statement it was, if there are more.
        """
        found = 0
        given = list(statements)
        for number, statement in enumerate(given, start=1):
            if statement.strip().lower() in commands.QUIT:
                break
            try:
                found += self.run(statement)
            except PipelineError as error:
                if len(given) == 1:
                    raise
                raise type(error)(f"statement {number} of {len(given)}: {error}") from error
        return found

    def _show(self, answer: Answer) -> int:
        if answer.rows.num_columns:
            show_rows(answer.rows, output=self.output)
        if answer.is_cut:
            note(
                f"the first {answer.rows.num_rows} rows; add LIMIT or WHERE, or take all with -o csv into a file"
            )
        return int(answer.rows.num_rows)
