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
        str | None, typer.Option("--host", help="Address to listen on; default serve.host.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65_535, help="Port; default serve.port. 0 takes any that is free."),
    ] = None,
    tables: SeveralTablesOption = None,
    config: SeveralConfigsOption = None,
) -> None:
    """Serve a page, JSON, /metrics for Prometheus and probes from the tables, until Ctrl-C.

    Example: lagwise serve --config conf/lagwise.toml

    It needs no Java and no broker, and goes on when the stream has stopped: lagwise_tables_age_seconds then grows.
    / lists the groups; each has a page with its members and partitions, plan, decisions and history, and the same as
    JSON below /api/v1/groups (deploy/docs/page.md). Nothing can be changed there unless serve.token is set: then
    plans that wait for approval can be approved there, and groups paused, resumed, pinned and unpinned.
    /metrics has the names of kafka-lag-exporter and kafka_exporter, so that their dashboards and rules go on, and
    lagwise's own: plans, members, capacity (deploy/docs/metrics.md). Table serve.metrics of the configuration says
    which groups, topics and names, and how many series at most.
    /healthz: 200 while this process answers. /readyz: 200 while the stream keeps the tables up to date, otherwise 503
    with the cause.
    Several clusters: repeat --config, one file for each job, and [serve] of the first applies; or repeat
    --tables, where orders can only be given for the cluster of a --config. Each row, link and sample then names its
    cluster, and one whose tables cannot be read leaves the others as they are.
    It listens on this machine alone, unless --host or serve.host says otherwise; it answers under addresses and the
    names in serve.hosts only. With serve.read_token set, only who brings that token, or serve.token, can read.
    Exit status: 0 stopped, 1 the address or the configuration cannot be used, 2 wrong usage.
    """
    logs.configure()
    found = find_several(tables or (), config or ())
    settings = found[0].config.serving_on(host=host, port=port)
    _tell_who_may_read(settings.serve)
    _tell_what_is_left_out(found)
    first, *others = (deployment(one, settings.serve, is_one=len(found) == 1) for one in found)
    roots = ", ".join(one.tables.root for one in found)
    app = build_app(first.tables, first.config, first.desk, others=others, read_token=read_token_of(settings))
    answer(app, settings.serve, on_listening=lambda url: note(f"serving {roots} on {url}"))


def deployment(source: TableSource, serve: ServeConfig, *, is_one: bool) -> Deployment:
    """A cluster on the page; `is_one` if there is no other.

    Raises:
        ConfigError: See `desk_of`.
        MissingDependencyError: See `desk_of`.
    """
    config = source.config.model_copy(update={"serve": serve})
    # With several clusters, Kafka is known only from the job's own file.
    desk = desk_of(source.tables, config) if is_one or source.is_configured else None
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
            "serve.read_token: is the same as serve.token, so readers could approve; take another"
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
            f"serve.hosts names no host: on {config.host} the page answers under addresses alone, and 421 under names"
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
