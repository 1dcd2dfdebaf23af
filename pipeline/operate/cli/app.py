"""The command `lagwise`: one module per subcommand, loaded when it is called.

So the help and the reading commands start in a fraction of a second: only commands that need Spark or a Kafka client,
which take seconds, load them.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline.errors import PipelineError
from pipeline.operate.extras import remedy

_PANELS = {
    "Run": {
        "run": "Run the job until it is stopped (Ctrl-C or SIGTERM).",
        "demo": "Run the job on an embedded broker with uneven traffic and show it live, until Ctrl-C.",
        "broker": "Run an Apache Kafka broker on this machine until Ctrl-C.",
        "serve": "Serve a page, JSON, /metrics for Prometheus and probes from the tables, until Ctrl-C.",
        "config": "Check a configuration.",
        "health": "Print in one line whether the job is alive and its tables up to date, for probes, cron and Nagios.",
        "backup": "Copy the tables into a new folder, each at one version, while the job runs.",
    },
    "Watch": {
        "lag": "Lag of every partition of every group, as last written by the job.",
        "groups": "Consumer groups: type, state, assignor, generation and members.",
        "doctor": "Why is a group not listed, planned or followed, or behind? Without GROUP: which are in trouble?",
        "history": "Lag as it was, oldest first: over a span of time, or at one moment.",
        "rebalances": "Changes of groups, oldest first: over a span of time, or the groups as they were at one moment.",
        "recommendations": "Decisions about each group with their reasons, newest first.",
        "quarantine": "Records that could not be read, with the reason, newest first. Bytes are hexadecimal.",
        "sql": "Query the tables in Spark SQL, now or in the past: one statement, a script on stdin, or at a prompt.",
        "control": "Read the control topic, which carries the published plans.",
    },
    "Control plans": {
        "approve": "Show the plan of a group that waits for approval, and publish exactly this plan.",
        "pause": "Publish no plan for a group until `lagwise resume`.",
        "resume": "Publish plans again for a group that is paused, or on probation after a plan that hurt.",
        "pin": "Keep partitions of a group where they are: no plan moves them.",
        "unpin": "Let plans move pinned partitions of a group again; without TOPIC, all of them.",
        "trigger": "Evaluate a group at once and let its next plan skip the guards.",
        "orders": "Standing orders of all groups: pauses, pins, triggers and approvals, with their time and author.",
    },
    "Plan on paper": {
        "assign": "Assign partitions: one JSON case per line on stdin, one JSON result per line on stdout.",
        "explain": "Explain an assignment: what moves, why, what each move gains; for cases as of `lagwise assign`.",
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


def load_command(name: str) -> Any:
    """The command `name`, with its module loaded."""
    found = getattr(import_module(f"pipeline.operate.cli.{_MODULES.get(name, name)}"), name)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class _LazyCommands(TyperGroup):
    """Loads commands when they are called; prints expected errors as one line, with exit status 1."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002  # click's signature
        # `--help` needs only names and first lines.
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name], rich_help_panel=_PANEL_OF[cmd_name])

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
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Lag of Kafka consumer groups, and the assignment that drains it soonest.

    Exit status of every command but `health` and `doctor`: 0 success, 1 nothing found or failure, 2 wrong usage.
    LAGWISE_DEBUG=1 shows the traceback of a failure.
    """


def main() -> None:
    """Run the command; every failure ends in one line and exit status 1."""
    try:
        app()
    # The last resort of a command line: a traceback helps its developers, a line helps its users.
    except Exception as error:
        if _wants_traceback():
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        typer.echo(f"lagwise: {text} (LAGWISE_DEBUG=1 shows the traceback)", err=True)
        sys.exit(1)
