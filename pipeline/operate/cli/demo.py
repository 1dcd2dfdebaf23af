"""`lagwise demo`: the whole system on this machine, without any setup."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from pipeline import logs
from pipeline.errors import PipelineError
from pipeline.operate.demo.folder import Folder, occupied
from pipeline.operate.demo.report.summary import Summary, next_commands
from pipeline.operate.demo.run import DemoRun
from pipeline.operate.demo.views.terminal import kept_clean
from pipeline.operate.output import note

log = logging.getLogger(__name__)


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="End this many seconds after the first batch."),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", dir_okay=False, help="Write the figures of the summary as JSON."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep tables and broker data; without it only the plot is kept.")
    ] = False,
) -> None:
    """Show the job at work on an embedded broker, until Ctrl-C.

    Example: lagwise demo --seconds 90 --json summary.json --keep

    Traffic is uneven. Groups that follow the control topic run alongside control groups of equal members that do not.
    At the end the demo prints a table of both and writes a plot to .lagwise/lagwise-demo.html.

    Everything else goes to .lagwise/demo in the working directory, where the reading commands find it. Files of an
    earlier demo are removed first. A second Ctrl-C ends the demo at once.

    Exit status: 0 it was ended or the time is up, 1 something failed, 2 wrong usage.
    """
    with occupied(keep=keep) as folder:
        try:
            summary = _run(folder, seconds=seconds)
        except BaseException:
            note(f"the demo failed; its log is {folder.log}")
            raise
        if json_file:
            summary.write(json_file)
        _say(summary, next_commands(folder, kept=keep, bootstrap=summary.bootstrap_servers))


def _run(folder: Folder, *, seconds: float | None) -> Summary:
    with kept_clean(folder.log) as console:
        logs.configure()
        try:
            return DemoRun(folder, console, seconds=seconds).run()
        except PipelineError:
            raise
        except Exception as error:
            log.exception("the demo failed")
            # Errors of Java have hundreds of lines.
            raise PipelineError(str(error).partition("\n")[0]) from error


def _say(summary: Summary, commands: list[str]) -> None:
    for line in (*summary.lines(), "", "Next:", *(f"  {command}" for command in commands)):
        typer.echo(line)
