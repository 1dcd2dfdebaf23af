"""History of a large cluster, minute by minute, as the stream appends it, without Spark and without Kafka.

`disk_world` says what is committed and appended. How many rows have their turn is what part `disk` has measured of the
rule of ADR 0022: three groups in ten each minute, the others every five minutes, all rows of a group together.
"""

from datetime import datetime, timezone
from uuid import UUID

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Floats, Int64s
from pipeline.lag.columns import from_floats
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import LAG_HISTORY
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.benchmarks.disk_world import START_MS, TICK_MS, DiskWorld

_MINUTE_MS = 60_000
_MIDNIGHT_MS = START_MS - START_MS % 86_400_000
_GAP_MINUTES = 5
_BUSY_OF_TEN = 3
"""Groups that have rows in every minute, as in part `disk`; the others have them once in five."""
_SMOOTHING = 0.2
"""Of the moving averages of rates, for each minute."""
_MEMBERS = 4


class HistoryDay:
    """Appends to `lag_history` what changed in each minute."""

    def __init__(self, store: Store, *, groups: int) -> None:
        """Nothing is written yet.

        Args:
            store: Of tables that exist.
            groups: Each has 60 partitions.
        """
        self._store = store
        self._world = DiskWorld(
            groups=groups, topics=groups, partitions=20, topics_each=3, now_ms=_MIDNIGHT_MS
        )
        names = self._world.names()
        n = self._world.rows
        members = np.arange(n) // (60 // _MEMBERS)
        self._names = {
            **names,
            "cluster": _same("local", n),
            "isolation": _same("read_uncommitted", n),
            "status": _same("OK", n),
            "assigned": pa.array(np.ones(n, bool)),
            "provisional": pa.array(np.zeros(n, bool)),
            "lag_seconds_is_lower_bound": pa.array(np.zeros(n, bool)),
            "generation": pa.array(np.full(n, 4, np.int32)),
            "member_id": _named(
                [f"consumer-{UUID(int=one << 64)}" for one in range(members[-1] + 1)], members
            ),
            "client_id": _named([f"client-{one}" for one in range(members[-1] + 1)], members),
            "client_host": _named(
                [f"/10.0.{one % 250}.{one % 13}" for one in range(members[-1] + 1)], members
            ),
        }
        group = np.arange(n) // 60
        self._is_busy = group % 10 < _BUSY_OF_TEN
        self._turn = group % _GAP_MINUTES
        self._lag: Int64s = np.zeros(n, np.int64)
        self._ends: Int64s = self._world.offsets()[2]
        self._commits: Int64s = self._world.offsets()[0]
        self._arrival: Floats = np.zeros(n)
        self._drain: Floats = np.zeros(n)
        self._minutes = 0

    @property
    def now_ms(self) -> int:
        """Clock of the newest minute."""
        return self._world.now_ms

    @property
    def rows(self) -> int:
        """Of `partition_lag`."""
        return self._world.rows

    def append_minute(self) -> int:
        """How many rows one minute has added."""
        for _ in range(_MINUTE_MS // TICK_MS):
            self._world.advance()
        committed, start, end = self._world.offsets()
        self._arrival += _SMOOTHING * ((end - self._ends) / 60 - self._arrival)
        self._drain += _SMOOTHING * ((committed - self._commits) / 60 - self._drain)
        self._ends, self._commits = end, committed
        lag = np.maximum(0, end - np.maximum(committed, start))
        is_due = self._is_busy | (self._turn == self._minutes % _GAP_MINUTES)
        self._lag = lag
        rows = np.flatnonzero(is_due)
        self._store.write("lag_history", self._rows(rows, committed, start, end), self._stamp())
        self._minutes += 1
        return len(rows)

    def _stamp(self) -> Stamp:
        return Stamp(batch_id=self._minutes, at_ms=self.now_ms)

    def _rows(self, rows: Int64s, committed: Int64s, start: Int64s, end: Int64s) -> pa.Table:
        n, now_us = len(rows), self.now_ms * 1000
        lag = self._lag[rows]
        at = pa.array(rows)
        day = datetime.fromtimestamp(self.now_ms / 1000, timezone.utc).date()
        late_s = np.where(lag > 0, lag / np.maximum(self._arrival[rows], 0.01), 0)
        columns = {name: column.take(at) for name, column in self._names.items()} | {
            "date": pa.array([day]).take(pa.array(np.zeros(n, np.int64))),
            "committed_offset": pa.array(committed[rows]),
            "commit_timestamp": _times(now_us - (rows // 15 * 7919 % 5000) * 1000),
            "log_start_offset": pa.array(start[rows]),
            "log_end_offset": pa.array(end[rows]),
            "log_observed_at": _times(np.full(n, now_us)),
            "lag": pa.array(lag),
            "raw_lag": pa.array(end[rows] - committed[rows]),
            "lag_at_commit": pa.array(lag // 2),
            "lag_seconds": from_floats(late_s),
            "arrival_rate": from_floats(self._arrival[rows]),
            "drain_rate": from_floats(self._drain[rows]),
            "updated_at": _times(np.full(n, now_us)),
            "batch_id": pa.array(np.full(n, self._minutes)),
        }
        schema = arrow_schema(LAG_HISTORY)
        arrays = [columns[one.name] if one.name in columns else pa.nulls(n, one.type) for one in schema]
        return pa.Table.from_arrays(arrays, names=schema.names).cast(schema)


def _named(names: list[str], index: Int64s) -> pa.Array:
    return pa.array(names).take(pa.array(index))


def _same(name: str, n: int) -> pa.Array:
    return _named([name], np.zeros(n, np.int64))


def _times(microseconds: Int64s) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))
