"""`lagwise lag`: the columns of kafka-consumer-groups, and more."""

from datetime import datetime, timedelta, timezone
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from pipeline.clock import at
from pipeline.errors import MissingTableError, StoreError
from pipeline.operate.cli.locations import ConfigOption, TablesOption, TableSource, find
from pipeline.operate.health import CLOCKS_DIFFER_S
from pipeline.operate.listings.old_offsets import warning
from pipeline.operate.listings.partitions import COLUMNS, SortKey, ordered
from pipeline.operate.listings.totals import TotalBy, totals
from pipeline.operate.old_log_ends import limit_of, with_is_old
from pipeline.operate.output import (
    FormatOption,
    WideOption,
    end_without,
    names,
    note,
    plain,
    progress,
    show,
    span_text,
)
from pipeline.tables.owner import heartbeat
from pipeline.tables.reading import Tables, all_of, matches
from pipeline.tables.stamp import Stamp

_BATCHES_UNTIL_OLD = 3
_EMPTY = (
    "the table has no rows: no batch has found a commit of a group yet; `lagwise health` says whether the driver is "
    "starting"
)

GroupsOption = Annotated[
    list[str] | None, typer.Option("--group", "-g", metavar="GLOB", help="Only these groups; repeatable.")
]
TopicsOption = Annotated[
    list[str] | None, typer.Option("--topic", "-t", metavar="GLOB", help="Only these topics; repeatable.")
]


def lag(
    *,
    group: GroupsOption = None,
    topic: TopicsOption = None,
    sort: Annotated[
        SortKey | None,
        typer.Option(
            "--sort",
            "-s",
            metavar="KEY",
            help="By group, topic, lag or lag_seconds; largest numbers first, unknown ones last. "
            "Default: group, or lag with --top.",
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", "-n", metavar="N", min=1, help="Only the first N.")
    ] = None,
    total: Annotated[
        TotalBy | None, typer.Option("--total", help="Sums, instead of one row per partition.")
    ] = None,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Lag of every partition, as last written by the job.

    Example: lagwise lag --group 'billing-*' --top 20

    AT-COMMIT is the lag at the newest commit; the rest of LAG arrived later. TREND compares with some minutes ago:
    growing, steady or falling. RETENTION-S is how long Kafka keeps the first unread record at least; 0: it may
    delete it at any moment, or has already (EXPIRED).

    A status with * is provisional: the commit may be an old one. LAG with ~ rests on an old log end offset, because no
    broker has reported a newer one; so does a LAG-SECONDS of ~0. LAG-SECONDS with > is a lower bound. - means unknown
    or none.

    Totals count what is known: > marks those that would be larger, < those that would be smaller, with full data.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    source = find(tables, config)
    with progress("reading partition_lag"):
        rows = source.tables.read(
            "partition_lag",
            columns=names(COLUMNS),
            where=all_of(matches("group_id", group or ()), matches("topic", topic or ())),
        )
    limit = limit_of(source.config)
    rows = with_is_old(rows, limit)
    _warn(source, rows, limit)
    shown, columns = totals(rows, by=total) if total else (rows, COLUMNS)
    key: SortKey = sort or ("lag" if top else "group")
    show(ordered(shown, key=key).slice(0, top), columns, output=output, wide=wide)
    end_without(rows, "no partition matches" if group or topic else _EMPTY)


def unconfirmed(rows: pa.Table) -> tuple[int, str | None]:
    """How many of the rows may be out of date, and why the first of them is."""
    reasons = pc.drop_null(rows["unconfirmed_reason"])
    return len(reasons), reasons[0].as_py() if len(reasons) else None


def why_provisional(stamp: Stamp | None) -> str:
    """Why rows are provisional that have no reason of their own."""
    if stamp is not None and stamp.reason is not None:
        return plain(stamp.reason)
    return "the stream has not read the offsets topic to its end since it started"


def warn_if_late(source: TableSource) -> Stamp | None:
    """Return the newest stamp; print a note on stderr, with the cause, if it is older than three triggers."""
    now = datetime.now(tz=timezone.utc)
    try:
        stamp = source.tables.open("partition_lag").stamp
    except MissingTableError:
        # A batch writes this table last, and none is complete.
        return None
    # A driver that starts commits to the table before it measures anything.
    written = source.tables.written_at("partition_lag") if stamp is None else at(stamp.at_ms)
    age = now - written
    if age < timedelta(seconds=-CLOCKS_DIFFER_S):
        note(
            f"the newest batch began {span_text(-age.total_seconds())} from now by this machine's clock, so its age is "
            "unknown; compare the clocks of this machine and of the driver's host"
        )
    if age > timedelta(seconds=_BATCHES_UNTIL_OLD * source.config.trigger.interval_s):
        note(_stream_words(source.tables, age.total_seconds(), now))
    return stamp


def _warn(source: TableSource, rows: pa.Table, limit: timedelta) -> None:
    stamp = warn_if_late(source)
    count, why = unconfirmed(rows)
    if count:
        note(f"* {count} of {rows.num_rows} rows may be out of date: {why}")
    provisional = (pc.sum(rows["provisional"]).as_py() or 0) - count
    if provisional > 0:
        note(f"* {provisional} of {rows.num_rows} rows are provisional: {why_provisional(stamp)}")
    old = warning(rows, limit, source.tables)
    if old:
        note(old)


def _stream_words(tables: Tables, age_s: float, now: datetime) -> str:
    """Cause of the age of the newest rows, as far as the driver's heartbeat shows it."""
    try:
        beat = heartbeat.read(tables.root, tables.storage_options)
    except StoreError:
        beat = None
    if beat is not None and beat.is_stopped:
        return f"the table was written {age_s:.0f} s ago: the stream was stopped"
    if beat is not None and abs(now.timestamp() - beat.at_ms / 1000) < heartbeat.SILENT_AFTER_S:
        return f"the stream is running (driver {plain(beat.owner)}); its newest batch was written {age_s:.0f} s ago"
    return f"the table was written {age_s:.0f} s ago: is the stream running?"
