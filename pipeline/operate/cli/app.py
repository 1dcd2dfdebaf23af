"""The command `lagwise`: one module per subcommand, loaded when it is called.

So the help and the reading commands start in a fraction of a second: only commands that need Spark or a Kafka client,
which take seconds, load them.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline.errors import PipelineError, without_queries
from pipeline.operate.extras import remedy

_PANELS = {
    "Run": {
        "run": "Run the job until it is stopped (Ctrl-C or SIGTERM).",
        "demo": "Show the job at work on an embedded broker, until Ctrl-C.",
        "broker": "Run an Apache Kafka broker on this machine until Ctrl-C.",
        "serve": "Serve a page, JSON and Prometheus metrics, until Ctrl-C.",
        "config": "Check a configuration.",
        "health": "Print whether the job is alive and its tables up to date.",
        "backup": "Copy the tables into a new folder while the job runs.",
    },
    "Watch": {
        "lag": "Lag of every partition, as last written by the job.",
        "groups": "Consumer groups with type, state, generation and members.",
        "doctor": "Why a group is behind, not listed, not planned or followed.",
        "history": "Lag over a span of time, oldest first, or at one moment.",
        "rebalances": "Changes of groups, oldest first, or groups at one moment.",
        "recommendations": "Decisions about groups with reasons, newest first.",
        "quarantine": "Records that could not be read, and why, newest first.",
        "sql": "Query the tables in Spark SQL, as they are or were.",
        "control": "Read the control topic, which carries the published plans.",
    },
    "Control plans": {
        "approve": "Show the plan that waits for approval, and publish it.",
        "pause": "Publish no plan for a group until `lagwise resume`.",
        "resume": "Publish plans again for a group that was paused.",
        "pin": "Keep partitions of a group where they are.",
        "unpin": "Let plans move pinned partitions of a group again.",
        "trigger": "Evaluate a group at once; its next plan skips the guards.",
        "orders": "Standing orders of all groups, with time and author.",
    },
    "Plan on paper": {
        "assign": "Assign partitions: a JSON case per line, a result per line.",
        "explain": "Explain an assignment: what moves, why, and what it gains.",
    },
}
COMMANDS = {name: line for commands in _PANELS.values() for name, line in commands.items()}
"""Each command with the first line of its help; its module holds a function or typer app of its name."""

_PANEL_OF = {name: panel for panel, commands in _PANELS.items() for name in commands}

_MODULES = {
    **{
        name: f"tables.{name}"
        for name in ("lag", "groups", "recommendations", "history", "rebalances", "quarantine")
    },
    **dict.fromkeys(("pause", "resume", "trigger", "pin", "unpin", "orders"), "orders.commands"),
    "approve": "orders.approve",
    "control": "control.tail",
}
"""Modules of the commands that are not named like their module."""

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def load_command(name: str) -> Any:
    """The command `name`, with its module loaded."""
    found = getattr(import_module(f"pipeline.operate.cli.{_MODULES.get(name, name)}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    _lay_out(command)
    return command


def _lay_out(command: Any) -> None:
    """Let the terminal wrap the paragraphs of the help, and drop the type of options that take no value.

    Typer keeps the line ends of docstrings, which are wider than a terminal, and takes [words] for markup.
    """
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs).replace("[", r"\[")
    for option in (*command.params, command.get_help_option(typer.Context(command, **_SETTINGS))):
        _drop_type(option)
    for one in getattr(command, "commands", {}).values():
        _lay_out(one)


def _drop_type(option: Any) -> None:
    if getattr(option, "is_flag", False):
        option.metavar = ""


class _LazyCommands(TyperGroup):
    """Loads commands when they are called; prints expected errors as one line, with exit status 1."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002  # click's signature
        # `--help` needs only names and first lines.
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name], rich_help_panel=_PANEL_OF[cmd_name])

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        _drop_type(option)
        return option

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, known, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and known else None, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PipelineError as error:
            if _wants_traceback():
                raise
            typer.echo(f"lagwise: {error}", err=True)
            raise typer.Exit(1) from None
        except ModuleNotFoundError as error:
            what = remedy(error)
            if what is None or _wants_traceback():
                raise
            typer.echo(f"lagwise: {what}", err=True)
            raise typer.Exit(1) from None


def _wants_traceback() -> bool:
    return os.environ.get("LAGWISE_DEBUG") == "1"


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lagwise {version('lagwise')}")
        raise typer.Exit


app = typer.Typer(
    cls=_LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    context_settings=_SETTINGS,
)


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Lag of Kafka consumer groups, and the assignment that drains it soonest.

    Exit status: 0 success, 1 nothing found or failure, 2 wrong usage. `health`,
    `doctor` and `run` have statuses of their own.

    LAGWISE_DEBUG=1 shows the traceback of a failure.
    """


def main() -> None:
    """Run the command; every failure ends in one line and exit status 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        # As stderr does. Consumers name their groups, and one name that the encoding lacks must not end a listing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    # The last resort of a command line: a traceback helps its developers, a line helps its users.
    except Exception as error:
        if _wants_traceback():
            raise
        text = " ".join(without_queries(f"{type(error).__name__}: {error}").split())
        typer.echo(f"lagwise: {text} (LAGWISE_DEBUG=1 shows the traceback)", err=True)
        sys.exit(1)
