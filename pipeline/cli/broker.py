"""`lagwise broker`: a Kafka to try things on."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from pipeline.embedded import EmbeddedBroker

_LOOK_EVERY_S = 0.5
_OFFSETS_PARTITIONS = "offsets.topic.num.partitions"


def broker(
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port to listen on; any free one.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to keep; without it nothing is kept.")
    ] = None,
    partitions_of_offsets_topic: Annotated[
        int, typer.Option(min=1, help="Partitions of __consumer_offsets in a new folder.")
    ] = 50,
) -> None:
    """Run an Apache Kafka broker on this machine until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    properties = {_OFFSETS_PARTITIONS: str(partitions_of_offsets_topic)}
    try:
        with EmbeddedBroker(data_dir=data, port=port, properties=properties, report=_on_stderr) as running:
            typer.echo(f"bootstrap servers: {running.bootstrap_servers}")
            typer.echo(f"data: {running.data_dir}")
            _wait_for_the_end(running)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)


def _wait_for_the_end(running: EmbeddedBroker) -> None:
    while running.pid is not None:
        time.sleep(_LOOK_EVERY_S)
    typer.echo(f"the broker ended by itself; see {running.data_dir}/server.log", err=True)
    raise typer.Exit(1)


def _on_stderr(line: str) -> None:
    typer.echo(line, err=True)
