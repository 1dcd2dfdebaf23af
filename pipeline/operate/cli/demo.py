"""`lagwise demo`: everything at work on this machine, nothing to set up."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import PipelineError
from pipeline.operate.demo.folder import Folder, occupied
from pipeline.operate.demo.report.summary import Summary, next_commands
from pipeline.operate.demo.run import Show
from pipeline.operate.demo.views.terminal import kept_clean
from pipeline.operate.output import note
from pipeline.run import logs

log = logging.getLogger(__name__)


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="End by itself so long after the first batch.", show_default=False),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", dir_okay=False, help="Write a summary.", show_default=False),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave tables and broker data; without it only the plot is left.")
    ] = False,
) -> None:
    """The stream on an embedded broker with uneven traffic, shown live, until Ctrl-C.

    Example: lagwise demo --seconds 90 --json summary.json --keep

    Groups that follow the control topic stand beside groups of the same members that do not; at the end there is
    a table of both, and a plot in .lagwise/lagwise-demo.html. Everything else is written below .lagwise/demo in
    the working directory, where the reading commands find it; what an earlier demo has left there is removed
    first. A second Ctrl-C ends it at once.
    Exit status: 0 it was ended or the time is up, 1 something failed, 2 wrong usage.
    """
    with occupied(keep=keep) as folder:
        try:
            summary = _run(folder, seconds=seconds)
        except BaseException:
            note(f"the log is {folder.log}")
            raise
        if json_file:
            summary.write(json_file)
        _say(summary, next_commands(folder, kept=keep, bootstrap=summary.bootstrap_servers))


def _run(folder: Folder, *, seconds: float | None) -> Summary:
    with kept_clean(folder.log) as console:
        logs.configure()
        try:
            return Show(folder, console, seconds=seconds).run()
        except PipelineError:
            raise
        except Exception as error:
            log.exception("the demo failed")
            # What Java throws has hundreds of lines.
            raise PipelineError(str(error).partition("\n")[0]) from error


def _say(summary: Summary, commands: list[str]) -> None:
    for line in (*summary.lines(), "", "Next:", *(f"  {command}" for command in commands)):
        typer.echo(line)
