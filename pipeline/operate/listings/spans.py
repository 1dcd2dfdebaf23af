"""Time spans of tables that are partitioned by day."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import Config


def between(start: datetime | None, end: datetime) -> pc.Expression:
    """Rows updated from `start` to `end`, filtered by day as well, since the tables are partitioned by day."""
    until = (pc.field("date") <= end.date()) & (pc.field("updated_at") <= end)
    if start is None:
        return until
    return until & (pc.field("date") >= start.date()) & (pc.field("updated_at") >= start)


def last_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, by key; `rows` are in the order of time."""
    numbered = rows.select(list(key)).append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([("row", "max")])
    return rows.take(last.sort_by([(name, "ascending") for name in key])["row_max"])


def longest_gap(config: Config) -> timedelta:
    """How long a row of `lag_history` holds at most: after it the partition is gone, or the stream was not running."""
    return timedelta(seconds=2 * max(config.history.max_gap_s, config.trigger.interval_s))
