"""Spans of time of the tables that are partitioned by day."""

from datetime import datetime

import pyarrow.compute as pc


def between(start: datetime | None, end: datetime) -> pc.Expression:
    """Rows updated from `start` to `end`, restricted by day as well, since the table's folders are days."""
    until = (pc.field("date") <= end.date()) & (pc.field("updated_at") <= end)
    if start is None:
        return until
    return until & (pc.field("date") >= start.date()) & (pc.field("updated_at") >= start)
