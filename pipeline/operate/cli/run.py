"""`lagwise run`: the stream, in this process."""

from typing import Annotated

import typer

from pipeline.operate.cli.locations import StreamConfigOption, find_config
from pipeline.run import main


def run(
    config: StreamConfigOption = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Read to the present end of the offsets topic, plan once, and stop."),
    ] = False,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="Wait, without Spark, until the driver that owns the tables stops or is silent for a minute.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Publish although a driver of other tables publishes for this Kafka cluster; that one ends.",
        ),
    ] = False,
) -> None:
    """Run the job until it is stopped (Ctrl-C or SIGTERM).

    Example: lagwise run --config conf/lagwise.toml

    It is the same as `spark-submit pipeline/run/main.py --config FILE`, but on this machine only.

    Without --standby it takes over at once: another driver on the same tables ends with status 4.

    Exit status: 0 stopped, or --once is done, 1 it cannot run, 2 wrong usage, 3 --once could not read everything
    within start.deadline_s, or nothing more for a minute, 4 another driver has taken over: restart with --standby only.
    """
    if once and standby:
        raise typer.BadParameter("--once and --standby exclude each other; leave one of them out")
    raise typer.Exit(main.run(find_config(config), once=once, is_standby=standby, takes_over=take_over))
