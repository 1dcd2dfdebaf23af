"""`lagwise lag`: the columns of kafka-consumer-groups, and more."""

from datetime import datetime, timedelta, timezone
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc
import typer

from pipeline.errors import StoreError
from pipeline.operate.cli.locations import ConfigOption, TablesOption, TableSource, find
from pipeline.operate.cli.tables.lag_totals import TotalBy, totals
from pipeline.operate.cli.tables.old_offsets import lag_cell, log_end_cell, warning
from pipeline.operate.old_log_ends import limit_of, with_is_old
from pipeline.operate.output import Column, FormatOption, Row, WideOption, names, note, plain, progress, show
from pipeline.tables import heartbeat
from pipeline.tables.reading import all_of, matches

_KEY = ("group_id", "topic", "partition", "member_id", "client_id", "client_host", "cluster")
_ORDERS = {
    "group": ("group_id", "ascending"),
    "topic": ("topic", "ascending"),
    "lag": ("lag", "descending"),
    "lag_seconds": ("lag_seconds", "descending"),
}
_BATCHES_UNTIL_OLD = 3

SortKey = Literal["group", "topic", "lag", "lag_seconds"]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GLOB", help="Only these groups; repeatable.", show_default=False),
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="GLOB", help="Only these topics; repeatable.", show_default=False),
]


def seconds_cell(row: Row) -> str:
    """`lag_seconds`, with `>` before it where it is only a lower bound."""
    bound = ">" if row["lag_seconds_is_lower_bound"] else ""
    return f"{bound}{plain(row['lag_seconds'])}"


def _status_cell(row: Row) -> str:
    return f"{row['status']}{'*' if row['provisional'] else ''}"


MEASURES = (
    Column(header="CURRENT-OFFSET", name="committed_offset", is_number=True),
    Column(header="LOG-END-OFFSET", name="log_end_offset", cell=log_end_cell, is_number=True),
    Column(header="LAG", name="lag", cell=lag_cell, is_number=True),
    Column(header="CONSUMER-ID", name="member_id"),
    Column(header="HOST", name="client_host"),
    Column(header="CLIENT-ID", name="client_id"),
    Column(header="STATUS", name="status", cell=_status_cell),
    Column(header="LAG-SECONDS", name="lag_seconds", cell=seconds_cell, is_number=True),
    Column(header="RAW-LAG", name="raw_lag", is_number=True, is_wide=True),
    Column(header="LOG-START-OFFSET", name="log_start_offset", is_number=True, is_wide=True),
    Column(header="ISOLATION", name="isolation", is_wide=True),
    Column(header="ARRIVAL/S", name="arrival_rate", is_number=True, is_wide=True),
    Column(header="DRAIN/S", name="drain_rate", is_number=True, is_wide=True),
    Column(header="ASSIGNED", name="assigned", is_wide=True),
    Column(header="INSTANCE-ID", name="group_instance_id", is_wide=True),
    Column(header="GENERATION", name="generation", is_number=True, is_wide=True),
    Column(header="COMMITTED-AT", name="commit_timestamp", is_wide=True),
    Column(header="LOG-OBSERVED-AT", name="log_observed_at", is_wide=True),
    Column(header="LOWER-BOUND", name="lag_seconds_is_lower_bound", is_wide=True),
    Column(header="PROVISIONAL", name="provisional", is_wide=True),
    Column(header="UPDATED-AT", name="updated_at", is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
"""What `partition_lag` and `lag_history` have in common; shown of rows `with_is_old`."""

PARTITION = (
    Column(header="GROUP", name="group_id"),
    Column(header="TOPIC", name="topic"),
    Column(header="PARTITION", name="partition", is_number=True),
)
_OUTLOOK = (
    Column(header="TREND", name="trend"),
    Column(header="RETENTION-S", name="retention_seconds", is_number=True),
    Column(header="TREND-LAG", name="trend_lag", is_number=True, is_wide=True),
    Column(header="TREND-AT", name="trend_at", is_wide=True),
)
"""What `partition_lag` alone has."""
_COLUMNS = (*PARTITION, *MEASURES, *_OUTLOOK)


def lag(
    *,
    group: GroupsOption = None,
    topic: TopicsOption = None,
    sort: Annotated[
        SortKey | None,
        typer.Option(
            "--sort",
            "-s",
            help="Sort key; largest numbers first, unknown ones last. Default: group, or lag with --top.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", "-n", min=1, help="Only the first N.", show_default=False)
    ] = None,
    total: Annotated[
        TotalBy | None,
        typer.Option("--total", help="Sums, instead of one row per partition.", show_default=False),
    ] = None,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Lag of every partition of every group, as last written by the stream.

    Example: lagwise lag --group 'billing-*' --top 20

    A status with * is provisional. LAG with ~ rests on an old log end offset, which no broker has reported since.
    LAG-SECONDS with > is a lower bound. TREND is that of the last minutes: growing, steady or falling. RETENTION-S is
    how long Kafka keeps the first unread record at least; 0 when some are deleted already. - means unknown or none.
    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    source = find(tables, config)
    with progress("reading partition_lag"):
        rows = source.tables.read(
            "partition_lag",
            columns=names(_COLUMNS),
            where=all_of(matches("group_id", group or ()), matches("topic", topic or ())),
        )
    limit = limit_of(source.config)
    rows = with_is_old(rows, limit)
    _warn(source, rows, limit)
    shown, columns = totals(rows, by=total) if total else (rows, _COLUMNS)
    key: SortKey = sort or ("lag" if top else "group")
    show(ordered(shown, key=key).slice(0, top), columns, output=output, wide=wide)
    if not rows.num_rows:
        note("no partition matches")
        raise typer.Exit(1)


def ordered(rows: pa.Table, *, key: SortKey) -> pa.Table:
    """`rows` by `key` (numbers descending, null last), then by what tells rows apart."""
    first, way = _ORDERS[key]
    rest = [name for name in _KEY if name in rows.column_names and name != first]
    keys = [(first, way)] if first in rows.column_names else []
    return rows.sort_by([*keys, *((name, "ascending") for name in rest)])


def _warn(source: TableSource, rows: pa.Table, limit: timedelta) -> None:
    now = datetime.now(tz=timezone.utc)
    age = now - source.tables.written_at("partition_lag")
    if age > timedelta(seconds=_BATCHES_UNTIL_OLD * source.config.trigger.interval_s):
        note(_stream_words(source.tables.root, age.total_seconds(), now))
    provisional = pc.sum(rows["provisional"]).as_py() or 0
    if provisional:
        note(
            f"* {provisional} of {rows.num_rows} rows are provisional: the stream has not read the offsets "
            "topic to its end since it started"
        )
    old = warning(rows, limit, source.tables)
    if old:
        note(old)


def _stream_words(root: str, age_s: float, now: datetime) -> str:
    """Why the newest rows are old, as far as the driver's heartbeat shows."""
    try:
        beat = heartbeat.read(root)
    except StoreError:
        beat = None
    if beat is not None and beat.is_stopped:
        return f"the table was written {age_s:.0f} s ago: the stream was stopped"
    if beat is not None and abs(now.timestamp() - beat.at_ms / 1000) < heartbeat.SILENT_AFTER_S:
        return f"the stream is running (driver {plain(beat.owner)}); its newest batch was written {age_s:.0f} s ago"
    return f"the table was written {age_s:.0f} s ago: is the stream running?"
