"""`lagwise health`: is the stream alive, and are its tables up to date?"""

from typing import Annotated

import typer

from pipeline import clock
from pipeline.errors import PipelineError
from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.health import look
from pipeline.operate.output import plain

_UNKNOWN = 3
_STATUS = {"ok": 0, "warning": 1, "critical": 2, "unknown": _UNKNOWN}


def health(
    *,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Check only whether the driver is alive: 1 becomes 0. Not for liveness probes."
        ),
    ] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Print whether the job is alive and its tables up to date.

    Example: lagwise health --config conf/lagwise.toml || mail -s lagwise ann

    The answer is one line, for probes, cron and Nagios. It rests on the driver's heartbeat, every 5 s, and on the
    newest batch. Either is too old after three triggers, and at least 15 s.

    On an object store there are no heartbeats: after ten triggers, a driver that waits for Kafka looks like a dead
    one; ask its own port (health.port). So does one that has waited for Kafka since its start, because it owns no
    tables yet: a liveness probe needs /healthz of the driver's port, or it kills a driver that only waits.

    Exit status: 0 ok, 1 warning: it is alive, but Kafka is unavailable, it is starting, or groups are provisional,
    2 critical: no driver is alive, or one waits for an operator (also wrong usage), 3 unknown:
    the tables cannot be read, or the driver's clock is ahead of this machine's.
    """
    try:
        source = find(tables, config)
        found = look(source.tables, source.config, now_ms=clock.now_ms())
    except PipelineError as error:
        typer.echo(f"unknown: {plain(str(error))}")
        raise typer.Exit(_UNKNOWN) from None
    reasons = "; ".join(found.reasons) or "the stream runs, and its tables are up to date"
    typer.echo(f"{found.state}: {plain(reasons)}")
    raise typer.Exit(0 if live and found.is_live else _STATUS[found.state])
