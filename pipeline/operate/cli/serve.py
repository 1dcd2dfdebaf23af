"""`lagwise serve`: a page, JSON and metrics from the tables, over HTTP."""

from typing import Annotated

import typer

from pipeline import logs
from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.output import note
from pipeline.operate.serve.server import serve as answer


def serve(
    *,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on; default serve.host.", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            help="Port; default serve.port. 0 takes any that is free.",
            show_default=False,
        ),
    ] = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Answer HTTP from the tables: a page, JSON, /metrics for Prometheus, probes; until Ctrl-C.

    Example: lagwise serve --config conf/lagwise.toml

    It needs no Java and no broker, and goes on when the stream has stopped: lagwise_tables_age_seconds then grows.
    / lists the groups; each has a page with its members and partitions, plan, decisions and history, and the same as
    JSON below /api/v1/groups (deploy/docs/page.md). Nothing can be changed there.
    /metrics has the names of kafka-lag-exporter and kafka_exporter, so that their dashboards and rules go on, and
    lagwise's own: plans, members, capacity (deploy/docs/metrics.md). Table serve.metrics of the configuration says
    which groups, topics and names, and how many series at most.
    /healthz: 200 while this process answers. /readyz: 200 while the stream keeps the tables up to date, or else 503
    and why.
    It listens on this machine alone, unless --host or serve.host says otherwise.
    Exit status: 0 stopped, 1 the address or the configuration cannot be used, 2 wrong usage.
    """
    logs.configure()
    source = find(tables, config)
    where = source.config.serve
    answer(
        source.tables,
        source.config,
        host=where.host if host is None else host,
        port=where.port if port is None else port,
        on_listening=lambda url: note(f"serving {source.tables.root} on {url}"),
    )
