"""`lagwise sql`: queries of the tables in Spark SQL."""

import sys
from typing import Annotated

import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import warn_if_late
from pipeline.operate.output import FormatOption, note
from pipeline.operate.sql import commands, shell, statements
from pipeline.operate.sql.engine import Engine
from pipeline.operate.sql.runner import Runner


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="STATEMENT",
            help="Statements with ; between them. Without any, they are read from stdin, or typed at a prompt.",
        ),
    ] = None,
    *,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Query the tables in Spark SQL, as they are or were.

    Example: lagwise sql "SELECT group_id, sum(lag) FROM partition_lag GROUP BY 1"

    Give one statement, a script on stdin, or type at a prompt. `lagwise sql tables` lists the tables, `lagwise sql
    "describe NAME"` the columns of one. All times are UTC.

    What was the lag at three? SELECT … FROM partition_lag TIMESTAMP AS OF '2026-01-31 03:00:00', or VERSION AS OF N.
    Versions go after tables.retention_hours; lag_history has what was before.

    Statements that write are refused. Spark runs in this process, and takes about ten seconds to start. Spans of time
    are seconds in json and csv. On a terminal, a table ends after 1000 rows.

    Exit status: 0 rows were printed, or the prompt was left, 1 there are none, or a statement failed and those after it
    did not run, 2 wrong usage.
    """
    if statement is not None and statements.is_empty(statement):
        raise typer.BadParameter("the statement is empty; leave it out for a prompt")
    source = find(tables, config)
    is_prompt = statement is None and sys.stdin.isatty()
    with Engine(source.tables, source.config) as engine:
        runner = Runner(engine, output=output, before_statement=lambda: warn_if_late(source))
        if is_prompt:
            note(f"tables of {source.tables.root}; Spark is starting; type help for help, Ctrl-D to leave")
            shell.run(runner)
            return
        found = runner.run_all(
            commands.all_of(sys.stdin.read() if statement is None else statement, engine.names)
        )
    if not found:
        note("no rows")
        raise typer.Exit(1)
