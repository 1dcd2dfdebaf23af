"""The lag of all groups over the last hour, from one read of `lag_history`."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from pipeline.operate.listings.spans import between
from pipeline.operate.serve.newest import Newest
from pipeline.operate.serve.snapshot import Snapshot
from pipeline.operate.serve.views.history import COLUMNS, Series, lags_of_groups

SPAN = timedelta(hours=1)
POINTS = 61
"""A moment each minute, the first and the last of the hour included."""
MOST_ROWS = 1_500_000
"""They take about 1 s and 300 MiB, once a minute."""


class Sparks:
    """Reads the last hour at most once a minute, however often it is requested."""

    def __init__(self, *, max_gap: timedelta, most_rows: int = MOST_ROWS) -> None:
        """Read nothing yet, and nothing of an hour with more rows than `most_rows`; for `max_gap` see `past_of`."""
        self._max_gap = max_gap
        self._most_rows = most_rows
        self._newest = Newest[datetime, Mapping[str, Series]]()

    def of(self, found: Snapshot, *, end: datetime) -> Mapping[str, Series]:
        """By group, its lag up to the minute of `end`; no group where there are too many rows.

        Raises:
            StoreError: The table cannot be read.
        """
        end = end.replace(second=0, microsecond=0)
        return self._newest.of(end, lambda: self._read(found, end))

    def _read(self, found: Snapshot, end: datetime) -> Mapping[str, Series]:
        start = end - SPAN
        own = between(start - self._max_gap, end)
        # Counted by the rows: the log's statistics do not have the column.
        if found.tables["lag_history"].count(own) > self._most_rows:
            return {}
        rows = found.read("lag_history", columns=COLUMNS, where=own)
        moments = [start + timedelta(minutes=minute) for minute in range(POINTS)]
        return lags_of_groups(rows, moments=moments, max_gap=self._max_gap)
