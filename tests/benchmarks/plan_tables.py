"""The tables of many groups that are to be decided about, minute by minute, without Kafka.

Of every twenty groups fourteen keep up; two have a member at half speed, one has been away, one lags everywhere,
one has no members, and one only commits. In every fifth group only half of the members read one of the topics. What
is published is never followed: plans stay open until they expire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.columns import from_floats, from_int64s, from_millis
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import ACKS, CONSUMER_GROUPS, ORDERS, PARTITION_LAG, TOPIC_OFFSETS

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
_KINDS = 20
_SLOW, _AWAY, _LAGS, _EMPTY, _ASSIGNS = (14, 15), 16, 17, 18, 19
_MEMBERS = 4
_SHARE_A_TOPIC = 2
"""Members that alone read the last topic, in some groups."""
_SEED = 12


@dataclass(slots=True, kw_only=True)
class PlanTables:
    """Groups that each read `topics_each` of the topics, every partition of them."""

    groups: int
    topics: int
    partitions: int
    """Per topic."""
    topics_each: int
    now_ms: int = START_MS
    _log_end: Int64s = field(init=False)
    _arrival: Floats = field(init=False)
    _committed: Int64s = field(init=False)
    """Groups x their partitions."""
    _drain: Floats = field(init=False)
    _kind: Int64s = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(_SEED)
        n = self.topics * self.partitions
        self._arrival = rng.lognormal(3, 1, n)
        self._log_end = rng.integers(1_000_000, 2_000_000, n)
        arriving = self._arrival[self._read()]
        # In no order: groups are dealt out to the cores by their names.
        self._kind = rng.permutation(self.groups) % _KINDS
        kind = self._kind[:, None]
        is_first = np.stack([self._owners(group) for group in range(self.groups)]) == 0
        slow = np.isin(kind, _SLOW) & is_first | (kind == _LAGS)
        self._drain = np.where(slow, 0.5, rng.uniform(0.98, 1.02, arriving.shape)) * arriving
        behind_s = np.where(slow, 300, np.where(kind == _AWAY, 600, rng.uniform(0, 2, arriving.shape)))
        self._committed = self._log_end[self._read()] - (behind_s * arriving).astype(np.int64)

    @property
    def rows(self) -> int:
        """Rows of `partition_lag`."""
        return self.groups * self.topics_each * self.partitions

    def a_minute_later(self) -> None:
        """Records and commits of a minute."""
        self.now_ms += MINUTE_MS
        self._log_end = self._log_end + (60 * self._arrival).astype(np.int64)
        after = self._committed + (60 * self._drain).astype(np.int64)
        self._committed = np.minimum(after, self._log_end[self._read()])

    def tables(self) -> dict[str, pa.Table]:
        """Every table that decisions are made from, by name."""
        return {
            "consumer_groups": self._groups(),
            "partition_lag": self._lags(),
            "topic_offsets": self._logs(),
            "acks": arrow_schema(ACKS).empty_table(),
            "orders": arrow_schema(ORDERS).empty_table(),
        }

    def group_ids(self) -> list[str]:
        """Every group, ascending."""
        return [f"group-{number:05d}" for number in range(self.groups)]

    def _topics_of(self, group: int) -> list[int]:
        return [(group * self.topics_each + at) % self.topics for at in range(self.topics_each)]

    def _read(self) -> Int64s:
        """Groups x their partitions: the index of each among all partitions."""
        topic = np.array([self._topics_of(group) for group in range(self.groups)], np.int64)
        read: Int64s = (topic[:, :, None] * self.partitions + np.arange(self.partitions)).reshape(
            self.groups, -1
        )
        return read

    def _owners(self, group: int) -> Int64s:
        """For each partition of a group the member that `range` gives it to."""
        numbers = np.arange(self.partitions)
        topics = [numbers * count // self.partitions for count in self._readers(group)]
        return np.concatenate(topics)

    def _readers(self, group: int) -> list[int]:
        """How many members read each topic of the group, the first ones."""
        last = _SHARE_A_TOPIC if group % 5 == 0 else _MEMBERS
        return [_MEMBERS] * (self.topics_each - 1) + [last]

    def _topic_names(self) -> list[str]:
        return [f"topic-{number:04d}" for number in range(self.topics)]

    def _groups(self) -> pa.Table:
        rows = [self._group(number, name) for number, name in enumerate(self.group_ids())]
        return pa.Table.from_pylist(
            [row for number, row in enumerate(rows) if self._kind[number] != _ASSIGNS],
            schema=arrow_schema(CONSUMER_GROUPS),
        )

    def _group(self, number: int, name: str) -> dict[str, Any]:
        topics = [f"topic-{topic:04d}" for topic in self._topics_of(number)]
        owners = self._owners(number).reshape(self.topics_each, -1)
        is_empty = self._kind[number] == _EMPTY
        members = [
            {
                "member_id": f"{name}-member-{at}",
                "client_id": f"client-{at}",
                "client_host": f"/10.0.0.{at}",
                "topics": [
                    topic
                    for topic, readers in zip(topics, self._readers(number), strict=True)
                    if at < readers
                ],
                "owned": {},
                "assigned": {
                    topic: np.flatnonzero(of_topic == at).tolist()
                    for topic, of_topic in zip(topics, owners, strict=True)
                    if (of_topic == at).any()
                },
            }
            for at in range(_MEMBERS)
        ]
        return {
            "cluster": "bench",
            "group_id": name,
            "group_type": "classic",
            "state": "Empty" if is_empty else "Stable",
            "protocol_type": "consumer",
            "assignor": "cooperative-sticky" if number % 3 == 0 else "range",
            "generation": 4,
            "members": [] if is_empty else members,
            "offsets_partition": number % 50,
            "confirmed": True,
            **_written(self.now_ms),
        }

    def _lags(self) -> pa.Table:
        read = self._read().ravel()
        group = np.repeat(np.arange(self.groups), self.topics_each * self.partitions)
        committed = self._committed.ravel()
        lag = self._log_end[read] - committed
        return _table(
            PARTITION_LAG,
            len(read),
            {
                "group_id": _named(self.group_ids(), group),
                "topic": _named(self._topic_names(), read // self.partitions),
                "partition": (read % self.partitions).astype(np.int32),
                "committed_offset": from_int64s(committed),
                "lag": from_int64s(lag),
                "lag_seconds": from_floats(lag / self._arrival[read]),
                "drain_rate": from_floats(self._drain.ravel()),
                "offsets_partition": (group % 50).astype(np.int32),
                "status": pa.array(["OK"]).take(pa.array(np.zeros(len(read), np.int8))),
                **dict.fromkeys(("assigned", "provisional", "confirmed"), np.zeros(len(read), np.bool_)),
            },
            now_ms=self.now_ms,
        )

    def _logs(self) -> pa.Table:
        n = len(self._log_end)
        return _table(
            TOPIC_OFFSETS,
            n,
            {
                "topic": _named(self._topic_names(), np.arange(n) // self.partitions),
                "partition": (np.arange(n) % self.partitions).astype(np.int32),
                "log_start_offset": np.zeros(n, np.int64),
                "log_end_offset": self._log_end,
                "arrival_rate": self._arrival,
                "observed_at": from_millis(np.full(n, self.now_ms)),
            },
            now_ms=self.now_ms,
        )


def _written(now_ms: int) -> dict[str, Any]:
    return {"updated_at": from_millis(np.array([now_ms]))[0].as_py(), "batch_id": 1}


def _named(names: list[str], index: Int64s) -> pa.Array:
    return pa.array(names).take(pa.array(index))


def _table(
    schema: StructType, n: int, columns: Mapping[str, pa.Array | Int64s | Floats | Bools], *, now_ms: int
) -> pa.Table:
    """The columns of a table; those that are not given are null."""
    always = {
        "cluster": pa.array(["bench"]).take(pa.array(np.zeros(n, np.int8))),
        "updated_at": from_millis(np.full(n, now_ms)),
        "batch_id": np.ones(n, np.int64),
    }
    given = always | dict(columns)
    arrow = arrow_schema(schema)
    return pa.table(
        [
            pa.array(given[field.name]).cast(field.type) if field.name in given else pa.nulls(n, field.type)
            for field in arrow
        ],
        schema=arrow,
    )
