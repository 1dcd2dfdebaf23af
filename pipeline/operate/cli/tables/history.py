"""`lagwise history`: lag over a span of time, or at one moment."""

from datetime import datetime, timedelta, timezone
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import GroupsOption, TopicsOption
from pipeline.operate.cli.times import SinceOption, parse_time
from pipeline.operate.listings.partitions import MEASURES, PARTITION
from pipeline.operate.listings.spans import between, last_of, longest_gap
from pipeline.operate.old_log_ends import limit_of, with_is_old
from pipeline.operate.output import Column, FormatOption, WideOption, end_without, names, note, progress, show
from pipeline.tables.reading import all_of, matches

_UPDATED = "updated_at"
_COLUMNS = (
    Column(header="UPDATED-AT", name=_UPDATED),
    *PARTITION,
    *(column for column in MEASURES if column.name != _UPDATED),
)
_KEY = ["group_id", "topic", "partition", "cluster"]
_LOOK_BACK = timedelta(days=1)


def history(
    *,
    group: GroupsOption = None,
    topic: TopicsOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", metavar="N", min=0, help="Only this partition.")
    ] = None,
    since: SinceOption = "1h",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="One moment instead: each partition's newest row of the 24 hours before it."
        ),
    ] = None,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Lag over a span of time, oldest first, or at one moment.

    Example: lagwise history --group billing --at 2026-01-31T12:00:00Z

    Without --at it prints every row since --since. The marks *, ~ and > mean the same as in `lagwise lag`.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    now = datetime.now(tz=timezone.utc)
    end = parse_time(at, now=now) if at else now
    start = end - _LOOK_BACK if at else parse_time(since, now=now)
    source = find(tables, config)
    with progress("reading lag_history"):
        rows = source.tables.read(
            "lag_history",
            columns=names(_COLUMNS),
            where=all_of(
                between(start, end),
                matches("group_id", group or ()),
                matches("topic", topic or ()),
                None if partition is None else pc.field("partition") == partition,
            ),
        )
    rows = with_is_old(rows, limit_of(source.config)).sort_by(
        [(name, "ascending") for name in (_UPDATED, *_KEY)]
    )
    if at:
        rows = last_of(rows, _KEY)
        _warn_of_gaps(rows, end, longest_gap(source.config))
    show(rows, _COLUMNS, output=output, wide=wide)
    end_without(rows, f"no row between {start:%Y-%m-%dT%H:%M:%SZ} and {end:%Y-%m-%dT%H:%M:%SZ} matches")


def _warn_of_gaps(rows: pa.Table, moment: datetime, limit: timedelta) -> None:
    """Print a note on stderr if a row is so old that nothing is known of its partition at that moment."""
    old = pc.sum(pc.less(rows[_UPDATED], pa.scalar(moment - limit, rows[_UPDATED].type))).as_py() or 0
    if old:
        note(
            f"{old} of {rows.num_rows} rows are more than {limit.total_seconds():.0f} s older than that moment: by "
            "then their group, commit or topic was gone, or the stream was not running"
        )
