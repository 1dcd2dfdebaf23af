"""`lagwise broker`: a Kafka for experiments, with one node or several."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.cluster import EmbeddedCluster
from pipeline.local.embedded.cluster_node import ClusterNode
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve

# How late the command reports that a node has stopped; Ctrl-C ends it at once.
_LOOK_EVERY_S = 0.5
_OFFSETS_PARTITIONS = "offsets.topic.num.partitions"


def broker(
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65_535, help="Port to listen on; default: any free one."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Data folder to use and keep; default: a temporary one."
        ),
    ] = None,
    partitions_of_offsets_topic: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            rich_help_panel="In a new data folder",
            help="Partitions of __consumer_offsets.",
        ),
    ] = 50,
    nodes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=100,
            help="Brokers. Several have a controller of their own, and internal topics with up to three replicas: "
            "any broker can be killed or frozen.",
        ),
    ] = 1,
) -> None:
    """Run an Apache Kafka broker on this machine until Ctrl-C.

    Example: lagwise broker --port 9092 --data ./kafka

    It prints the bootstrap servers and the data folder once it answers.

    Exit status: 0 stopped, 1 it could not start, or ended unexpectedly, 2 wrong usage.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    properties = {_OFFSETS_PARTITIONS: str(partitions_of_offsets_topic)}
    try:
        if nodes == 1:
            _run_one(data, port, properties)
        elif port is not None:
            raise typer.BadParameter(
                "several brokers choose free ports; leave out --port", param_hint="--port"
            )
        else:
            _run_several(EmbeddedCluster(nodes=nodes, data_dir=data, properties=properties))
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)


def _run_one(data: Path | None, port: int | None, properties: dict[str, str]) -> None:
    with EmbeddedBroker(data_dir=data, port=port, properties=properties, report=_on_stderr) as running:
        typer.echo(f"bootstrap servers: {running.bootstrap_servers}")
        typer.echo(f"data: {running.data_dir}")
        while running.pid is not None:
            time.sleep(_LOOK_EVERY_S)
        typer.echo(f"the broker stopped unexpectedly; see {running.data_dir}/server.log", err=True)
        raise typer.Exit(1)


def _run_several(cluster: EmbeddedCluster) -> None:
    resolve(KAFKA, report=_on_stderr)
    with cluster:
        typer.echo(f"bootstrap servers: {cluster.bootstrap_servers}")
        typer.echo(f"data: {cluster.data_dir}")
        for node in cluster.nodes:
            typer.echo(f"{node.role} {node.node_id}: process {node.pid}, port {node.port}, {node.data_dir}")
        _wait_for_the_last(list(cluster.nodes))


def _wait_for_the_last(running: list[ClusterNode]) -> None:
    """Wait until the last node ends. A killed node is not restarted, and the others go on without it."""
    while running:
        time.sleep(_LOOK_EVERY_S)
        for node in [node for node in running if node.pid is None]:
            running.remove(node)
            typer.echo(f"{node.role} {node.node_id} stopped; see {node.data_dir}/server.log", err=True)
    raise typer.Exit(1)


def _on_stderr(line: str) -> None:
    typer.echo(line, err=True)
