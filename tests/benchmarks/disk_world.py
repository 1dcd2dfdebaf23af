"""What a large cluster does in each 30 seconds, as a batch decodes it, without Kafka.

A quarter of the topics is idle; of the others each partition has a rate of its own, which wanders, and its records
arrive as a Poisson process. Members commit every five seconds, each at its own moment, all of its partitions at once.
Of every twenty groups fourteen keep up; two have a member at half speed, one has been away and catches up, one is five
minutes behind everywhere, one has no members and does not commit, one has no members and commits. Nobody joins or leaves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.decode.rows import ARROW, rows_of
from pipeline.kafka.positions import PartitionKey, Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source.decoded import Decoded, decoded_of

START_MS = 2_000_000_000_000
TICK_MS = 30_000
_COMMIT_EVERY_MS = 5_000
_KINDS = 20
_SLOW, _AWAY, _BEHIND, _STOPPED, _ASSIGNS = (14, 15), 16, 17, 18, 19
_MEMBERS = 4
_OFFSETS_PARTITIONS = 50
_IDLE_SHARE = 0.25
_SEED = 12


@dataclass(slots=True, kw_only=True)
class DiskWorld:
    """Groups that each read `topics_each` of the topics, every partition of them."""

    groups: int
    topics: int
    partitions: int
    """Per topic."""
    topics_each: int
    now_ms: int = START_MS
    _rng: np.random.Generator = field(init=False)
    _rate: Floats = field(init=False)
    """Records/s by partition of a log."""
    _drift: Floats = field(init=False)
    """What they are multiplied by, as a logarithm."""
    _log_start: Int64s = field(init=False)
    _log_end: Int64s = field(init=False)
    _read: Int64s = field(init=False)
    """By row: the partition of a log."""
    _member: Int64s = field(init=False)
    """By row: its owner, numbered through all groups."""
    _kind: Int64s = field(init=False)
    """By row."""
    _delay_s: Floats = field(init=False)
    """By member: from the append of a record until it is processed."""
    _phase_ms: Floats = field(init=False)
    """By member: when it commits."""
    _committed: Int64s = field(init=False)
    _position: Int64s = field(init=False)
    """By partition of the offsets topic: its log end."""

    def __post_init__(self) -> None:
        rng = self._rng = np.random.default_rng(_SEED)
        n = self.topics * self.partitions
        is_idle = np.repeat(rng.random(self.topics) < _IDLE_SHARE, self.partitions)
        self._rate = np.where(is_idle, 0.0, rng.lognormal(2.5, 1.2, n))
        self._drift = np.zeros(n)
        self._log_end = rng.lognormal(17, 2, n).astype(np.int64)
        self._log_start = np.maximum(0, self._log_end - (self._rate * 86_400 * 7).astype(np.int64))
        topic = (
            np.arange(self.groups)[:, None] * self.topics_each + np.arange(self.topics_each)
        ) % self.topics
        self._read = (topic[:, :, None] * self.partitions + np.arange(self.partitions)).ravel()
        each = self.topics_each * self.partitions
        owner = np.tile(np.arange(self.partitions) * _MEMBERS // self.partitions, self.topics_each)
        self._member = (np.arange(self.groups)[:, None] * _MEMBERS + owner).ravel()
        self._kind = np.repeat(rng.permutation(self.groups) % _KINDS, each)
        self._delay_s = rng.uniform(0.05, 1, self.groups * _MEMBERS)
        self._phase_ms = rng.uniform(0, _COMMIT_EVERY_MS, self.groups * _MEMBERS)
        late_s = np.where(self._is_slow(), 300, np.where(self._kind == _AWAY, 600, 0))
        self._committed = self._log_end[self._read] - (late_s * self._rate[self._read]).astype(np.int64)
        self._committed = np.maximum(0, self._committed)
        self._position = rng.integers(10**8, 10**9, _OFFSETS_PARTITIONS)

    @property
    def rows(self) -> int:
        """Rows of `partition_lag`."""
        return len(self._read)

    @property
    def asked(self) -> int:
        """Partitions that the brokers are asked for."""
        return len(self._log_end)

    def advance(self) -> None:
        """Records and commits of a tick."""
        rng, tick_s = self._rng, TICK_MS / 1000
        self.now_ms += TICK_MS
        self._drift = 0.98 * self._drift + rng.normal(0, 0.05, self.asked)
        rate = self._rate * np.exp(self._drift)
        self._log_end = self._log_end + rng.poisson(rate * tick_s)
        # Segments are deleted once in a while.
        cut = rng.random(self.asked) < 1 / 500
        self._log_start = np.where(
            cut, self._log_start + (rate * 86_400 / 5).astype(np.int64), self._log_start
        )
        self._log_start = np.minimum(self._log_start, self._log_end)
        self._phase_ms = self._phase_ms + rng.normal(0, 5, len(self._phase_ms))
        behind_s = self._delay_s + self._since_commit_ms() / 1000
        of_row = rate[self._read]
        up_to_date = self._log_end[self._read] - rng.poisson(of_row * behind_s[self._member])
        pace = np.where(self._kind == _AWAY, 1.5, np.where(self._kind == _BEHIND, 1.0, 0.5))
        catching_up = self._committed + rng.poisson(of_row * pace * tick_s)
        is_late = self._is_slow() | (self._kind == _AWAY)
        after = np.where(is_late, np.minimum(catching_up, up_to_date), up_to_date)
        after = np.where(self._kind == _STOPPED, self._committed, after)
        self._committed = np.maximum(self._committed, after)

    def events(self, *, first: bool) -> Decoded:
        """What a batch decodes now.

        Args:
            first: With the records of the groups.
        """
        parts = [*self._commits().to_batches(), *self._logs().to_batches()]
        return decoded_of([*parts, *self._groups()] if first else parts)

    def offsets(self) -> tuple[Int64s, Int64s, Int64s]:
        """By row: what was committed, log start and log end."""
        return self._committed, self._log_start[self._read], self._log_end[self._read]

    def names(self) -> dict[str, pa.Array]:
        """By row: group, topic and partition."""
        return {"group_id": _named(self._group_ids(), self._member // _MEMBERS), **self._names(self._read)}

    def positions(self) -> dict[PartitionKey, Position]:
        """Where reading the offsets topic goes on, as every batch writes it down."""
        return {(OFFSETS_TOPIC, place): Position(int(at), 7) for place, at in enumerate(self._position)}

    def _is_slow(self) -> Bools:
        is_first = self._member % _MEMBERS == 0
        is_slow: Bools = np.isin(self._kind, _SLOW) & is_first | (self._kind == _BEHIND)
        return is_slow

    def _since_commit_ms(self) -> Floats:
        """By member, at the end of the tick."""
        since: Floats = (self.now_ms - self._phase_ms) % _COMMIT_EVERY_MS
        return since

    def _commits(self) -> pa.Table:
        group = self._member // _MEMBERS
        place = group % _OFFSETS_PARTITIONS
        times = TICK_MS // _COMMIT_EVERY_MS
        committed_ms = (self.now_ms - self._since_commit_ms()).astype(np.int64)[self._member]
        # In the last five seconds each member commits once; what a member commits stands together.
        order = np.lexsort((np.arange(self.rows), committed_ms, place))
        begin = np.searchsorted(place[order], np.arange(_OFFSETS_PARTITIONS))
        count = np.bincount(place, minlength=_OFFSETS_PARTITIONS)
        position = np.empty(self.rows, np.int64)
        position[order] = np.arange(self.rows) - begin[place[order]]
        position += (self._position + count * (times - 1))[place]
        self._position = self._position + count * times
        commits = _arrow(
            "commit",
            self.rows,
            group_id=_named(self._group_ids(), group),
            **self._names(self._read),
            offsets_partition=pa.array(place.astype(np.int32)),
            position=pa.array(position),
            committed_offset=pa.array(self._committed),
            leader_epoch=pa.array(np.full(self.rows, 7, np.int32)),
            commit_timestamp_ms=pa.array(committed_ms),
        )
        return commits.filter(pa.array((self._kind != _STOPPED) | (self.now_ms == START_MS)))

    def _logs(self) -> pa.Table:
        all_of_them = np.arange(self.asked)
        ids = [str(UUID(int=topic + (12 << 96))) for topic in range(self.topics)]
        return _arrow(
            "log_offset",
            self.asked,
            **self._names(all_of_them),
            topic_id=_named(ids, all_of_them // self.partitions),
            log_start_offset=pa.array(self._log_start),
            log_end_offset=pa.array(self._log_end),
            isolation=_named(["read_uncommitted"], 0 * all_of_them),
            observed_at_ms=pa.array(np.full(self.asked, self.now_ms + 800)),
        )

    def _groups(self) -> Iterator[pa.RecordBatch]:
        kinds = self._kind.reshape(self.groups, -1)[:, 0]
        rows = [
            self._group(number, name, is_empty=kinds[number] == _STOPPED)
            for number, name in enumerate(self._group_ids())
            if kinds[number] != _ASSIGNS
        ]
        yield rows_of(rows)

    def _group(self, number: int, name: str, *, is_empty: bool) -> dict[str, Any]:
        topics = [
            f"topic-{(number * self.topics_each + at) % self.topics:05d}" for at in range(self.topics_each)
        ]
        numbers = np.arange(self.partitions)
        members = [
            {
                "member_id": f"consumer-{name}-1-{UUID(bytes=self._rng.bytes(16))}",
                "client_id": f"consumer-{name}-1",
                "client_host": f"/10.{number % 250}.{number // 250}.{at}",
                "topics": topics,
                "owned": {},
                "assigned": dict.fromkeys(
                    topics, numbers[numbers * _MEMBERS // self.partitions == at].tolist()
                ),
            }
            for at in range(_MEMBERS)
        ]
        return {
            "row_kind": "group",
            "group_id": name,
            "group_type": "classic",
            "state": "Empty" if is_empty else "Stable",
            "protocol_type": "consumer",
            "assignor": "range",
            "rebalance_protocol": "eager",
            "generation": 4,
            "members": [] if is_empty else members,
            "offsets_partition": number % _OFFSETS_PARTITIONS,
            "position": 1_000 + number,
        }

    def _group_ids(self) -> list[str]:
        return [f"group-{number:05d}" for number in range(self.groups)]

    def _names(self, index: Int64s) -> dict[str, pa.Array]:
        names = [f"topic-{topic:05d}" for topic in range(self.topics)]
        return {
            "topic": _named(names, index // self.partitions),
            "partition": pa.array((index % self.partitions).astype(np.int32)),
        }


def _named(names: list[str], index: Int64s) -> pa.Array:
    return pa.array(names).take(pa.array(index))


def _arrow(row_kind: str, size: int, **columns: pa.Array) -> pa.Table:
    """Decoded rows; columns that are not given are null."""
    columns["row_kind"] = _named([row_kind], np.zeros(size, np.int64))
    arrays = [columns.get(one.name, pa.nulls(size, one.type)) for one in ARROW]
    return pa.table(arrays, schema=ARROW)
