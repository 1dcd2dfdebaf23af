"""Display of old log end offsets, which no broker has reported for a while, and the warning about them."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.old_log_ends import IS_OLD
from pipeline.operate.output import Row, plain
from pipeline.tables.reading import Tables

OLD = "~"
"""Sign before a figure that rests on an old log end offset."""


def old_cell(name: str) -> Callable[[Row], str]:
    """A cell of rows `with_is_old`, with `~` before it if it is, or follows from, an old log end offset."""
    return lambda row: f"{OLD if row[IS_OLD] and row[name] is not None else ''}{plain(row[name])}"


def warning(rows: pa.Table, limit: timedelta, tables: Tables) -> str | None:
    """A line about old log end offsets among rows `with_is_old` of `partition_lag`; None if there are none."""
    old = rows.filter(rows[IS_OLD])
    if not old.num_rows:
        return None
    since: datetime = pc.min(old["log_observed_at"]).as_py()
    error = _error(old, tables)
    return (
        f"{OLD} {old.num_rows} of {rows.num_rows} rows: no broker has reported the log end offset for more than "
        f"{limit.total_seconds():.0f} s, for the oldest row since {plain(since)}{f' ({error})' if error else ''}; "
        "the lag may have grown since"
    )


def _error(old: pa.Table, tables: Tables) -> str | None:
    """The most frequent error of the partitions of these rows."""
    keys = ["topic", "partition"]
    try:
        failed = tables.read("topic_offsets", columns=[*keys, "error"], where=pc.field("error").is_valid())
    except MissingTableError:
        return None
    reported = failed.join(old.select(keys).group_by(keys).aggregate([]), keys=keys, join_type="inner")
    counted = (
        reported.group_by("error").aggregate([("topic", "count")]).sort_by([("topic_count", "descending")])
    )
    return plain(counted["error"][0].as_py()) if counted.num_rows else None
