"""`lagwise serve`: a page, JSON and metrics from the tables, over HTTP."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from pipeline import logs
from pipeline.config.hosts import is_loopback
from pipeline.config.model import Config, ServeConfig
from pipeline.config.secret_values import resolve
from pipeline.errors import ConfigError, MissingDependencyError
from pipeline.operate.cli.locations import (
    SeveralConfigsOption,
    SeveralTablesOption,
    TableSource,
    find_several,
    place_of,
)
from pipeline.operate.output import note
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.clusters import Deployment
from pipeline.operate.serve.listener.server import serve as answer
from pipeline.operate.serve.orders import Desk, why_too_short
from pipeline.tables.reading import Tables


def serve(
    *,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on; default serve.host."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65_535, help="Port; default serve.port. 0 takes a free one."
        ),
    ] = None,
    tables: SeveralTablesOption = None,
    config: SeveralConfigsOption = None,
) -> None:
    """Serve a page, JSON and Prometheus metrics, until Ctrl-C.

    Example: lagwise serve --config conf/lagwise.toml

    It reads the tables and needs no Java and no broker. When the stream stops, it keeps serving,
    and lagwise_tables_age_seconds grows.

    / lists the groups. Each has a page with its members, partitions, plan, decisions and history; /api/v1/groups has
    the same as JSON (deploy/docs/page.md). The page changes nothing unless serve.token is set: then it takes
    approvals, and pauses, resumes, pins and unpins groups.

    /metrics keeps the names of kafka-lag-exporter and kafka_exporter, so that their dashboards and rules keep
    working, and adds plans, members and capacity (deploy/docs/metrics.md). [serve.metrics] in the configuration
    chooses groups, topics and names, and limits the number of series.

    /healthz answers 200 while this process runs. /readyz answers 200 while the stream keeps the tables up to date,
    and otherwise 503 with the cause.

    For several clusters, repeat --config, one file for each job: [serve] of the first applies. Or repeat --tables:
    orders can then be given only for the cluster of a --config. Each row, link and sample names its cluster. If the
    tables of one cannot be read, the others stay as they are.

    It listens on this machine alone unless --host or serve.host says otherwise, and answers only under addresses and
    the names in serve.hosts. With serve.read_token set, reading needs that token or serve.token.

    Exit status: 0 stopped, 1 the address or the configuration cannot be used, 2 wrong usage.
    """
    logs.configure()
    found = find_several(tables or (), config or ())
    settings = found[0].config.serving_on(host=host, port=port)
    _tell_who_may_read(settings.serve)
    _tell_what_is_left_out(found)
    first, *others = (deployment(one, settings.serve) for one in found)
    roots = ", ".join(one.tables.root for one in found)
    app = build_app(first.tables, first.config, first.desk, others=others, read_token=read_token_of(settings))
    answer(app, settings.serve, on_listening=lambda url: note(f"serving {roots} on {url}"))


def deployment(source: TableSource, serve: ServeConfig) -> Deployment:
    """A cluster on the page; it takes orders if the tables are those of the configuration, which names its Kafka.

    Raises:
        ConfigError: See `desk_of`.
        MissingDependencyError: See `desk_of`.
    """
    config = source.config.model_copy(update={"serve": serve})
    root, own = source.tables.root, config.tables.root
    is_own = place_of(root) == place_of(own)
    if config.serve.token and not is_own:
        note(f"orders are off on the pages of {root}: the configuration is that of the tables under {own}")
    desk = desk_of(source.tables, config) if is_own else None
    return Deployment(tables=source.tables, config=config, desk=desk)


def read_token_of(config: Config) -> str | None:
    """The token of readers; None if none is set.

    Raises:
        ConfigError: The token cannot be read, is too short, or approves as well.
    """
    if not config.serve.read_token:
        return None
    token = _resolved("serve.read_token", config.serve.read_token)
    if config.serve.token and token == _resolved("serve.token", config.serve.token):
        raise ConfigError(
            "serve.read_token: is the same as serve.token, so readers could give orders; use another"
        )
    return token


def _resolved(name: str, reference: str) -> str:
    token = resolve({name: reference})[name]
    if why := why_too_short(token):
        raise ConfigError(f"{name}: {why}")
    return token


def _tell_who_may_read(config: ServeConfig) -> None:
    """Print the consequences of an address that other hosts can reach."""
    if is_loopback(config.host):
        return
    if not config.hosts and not config.origins:
        note(
            f"serve.hosts is empty: on {config.host} the page answers under IP addresses only; add the names that "
            "browsers use"
        )
    if not config.read_token:
        note(f"serve.read_token is not set: anyone who reaches {config.host} can read everything")


def _tell_what_is_left_out(found: Sequence[TableSource]) -> None:
    """Print which settings of further files do not apply."""
    first = found[0].config.serve
    for one in found[1:]:
        serve = one.config.serve
        differs = sorted(
            name for name in serve.model_fields_set if getattr(serve, name) != getattr(first, name)
        )
        if differs:
            note(
                f"[serve] of the first --config applies to all clusters: {', '.join(differs)} in the file for "
                f"{one.tables.root} is not used"
            )


def desk_of(tables: Tables, config: Config) -> Desk | None:
    """The desk for orders of the page; None if no token is set.

    Raises:
        ConfigError: The token cannot be read, or is too short.
        MissingDependencyError: The Kafka client is missing.
    """
    if not config.serve.token:
        return None
    token = _resolved("serve.token", config.serve.token)
    try:
        # A read-only page needs no client.
        from pipeline.operate.cli.orders.approval import approve_plan  # noqa: PLC0415
        from pipeline.operate.cli.orders.standing import stand  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise MissingDependencyError(
            "serve.token: orders on the page need the package confluent-kafka: pip install 'lagwise[confluent]'"
        ) from None

    return Desk(token=token, approve=partial(approve_plan, tables, config), stand=partial(stand, config))
