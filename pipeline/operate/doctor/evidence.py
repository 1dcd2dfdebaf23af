"""Evidence: what the tables contain about the stream and one group, read once, and how old it is."""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assignor.errors import DecodeError
from assignor.protocol.kafka.offsets import group_id_of
from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import MissingTableError
from pipeline.fold.members import with_known_members
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.operate.doctor.finding import Figures, Question
from pipeline.operate.listings.orders import ORDERS
from pipeline.operate.old_log_ends import limit_of, with_is_old
from pipeline.operate.output import plain
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp

Row = dict[str, Any]

_LAG = (
    *("cluster", "group_id", "topic", "partition", "offsets_partition", "committed_offset"),
    *("log_start_offset", "log_end_offset", "log_observed_at", "lag", "lag_seconds"),
    *("lag_seconds_is_lower_bound", "arrival_rate", "drain_rate", "status", "assigned", "member_id"),
    *("client_id", "client_host", "provisional", "trend", "unconfirmed_reason", "updated_at"),
)
_GROUP = (
    *("cluster", "group_id", "group_type", "state", "protocol_type", "assignor", "generation", "members"),
    *("target_epoch", "reconciliation", "offsets_partition", "unconfirmed_reason", "updated_at"),
)
_DECISION = (
    "group_id",
    *("epoch", "decision", "reason", "strategy", "moves", "drain_s_before", "drain_s_after", "drain_s_bound"),
    *("capacity_known", "record", "valid_until", "awaiting_since", "plan", "state", "updated_at"),
    *("plan_effect", "plan_effect_why", "probation_until"),
)
_ACKS = ("group_id", "kind", "epoch", "member_id", "why", "acked_at")
_TOPICS = ("topic", "partition", "log_end_offset", "observed_at", "error", "deleted_at")
_QUARANTINE = ("key", "reason", "updated_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvidence:
    """Report of the newest batch."""

    tables: Tables
    config: Config
    is_configured: bool
    """True if the configuration was given, and so is presumably the stream's; otherwise it holds defaults."""
    now: datetime
    stamp: Stamp | None
    """Stamp of the newest batch; None if none was written."""

    @property
    def as_of(self) -> datetime | None:
        """Time of the newest batch, at which the tables' figures of groups and lag were true."""
        return None if self.stamp is None else clock.at(self.stamp.at_ms)

    @property
    def offsets_partitions(self) -> int:
        """Partitions of the offsets topic that the newest batch knew; 0 if that is unknown."""
        positions = (self.stamp.positions if self.stamp else None) or {}
        return sum(topic == OFFSETS_TOPIC for topic, _ in positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvidence:
    """Rows about one group."""

    group_id: str
    stream: StreamEvidence
    lags: Sequence[Row]
    group: Row | None
    decision: Row | None
    acks: Sequence[Row]
    orders: Row | None
    topics: Sequence[Row]
    """Rows of `topic_offsets` for the topics that the group subscribes to or has committed to."""
    quarantined: Sequence[Row]
    others: Sequence[str] = ()
    """All groups that the tables list; empty when this one is listed."""

    @property
    def is_listed(self) -> bool:
        """Return whether `lagwise groups` shows it."""
        return self.group is not None or bool(self.lags)

    @property
    def members(self) -> Sequence[Row]:
        """Members in its newest record; also empty if they are unknown."""
        return (self.group["members"] if self.group else None) or ()

    @property
    def has_known_members(self) -> bool:
        """Return whether the tables know the members, or that there are none."""
        return self.group is not None and self.group["members"] is not None

    def figures(self, question: Question, source: str, as_of: datetime | None) -> Figures:
        """The common part of findings about the group."""
        return Figures(question=question, source=source, as_of=as_of, object=plain(self.group_id))

    @property
    def offsets_partition(self) -> int | None:
        """Return the partition of the offsets topic that holds the group; None if unknown."""
        known = [self.group] if self.group else list(self.lags[:1])
        if known and known[0]["offsets_partition"] is not None:
            return int(known[0]["offsets_partition"])
        count = self.stream.offsets_partitions
        return offsets_partition_of(self.group_id, count) if count else None


def read_stream(tables: Tables, config: Config, *, is_configured: bool, now: datetime) -> StreamEvidence:
    """What the newest batch reported.

    Raises:
        MissingTableError: There are no tables under the root.
        StoreError: They cannot be read.
    """
    return StreamEvidence(
        tables=tables,
        config=config,
        is_configured=is_configured,
        now=now,
        stamp=tables.open("partition_lag").stamp,
    )


def read_group(stream: StreamEvidence, group_id: str) -> GroupEvidence:
    """Read what the tables contain about the group.

    Raises:
        StoreError: They cannot be read.
    """
    group = _Rows(stream, group_id).of(group_id)
    return group if group.is_listed else replace(group, others=listed_groups(stream.tables))


def read_groups(stream: StreamEvidence) -> Iterator[GroupEvidence]:
    """Read the same for every listed group, each table once.

    Raises:
        StoreError: They cannot be read.
    """
    found = _Rows(stream, None)
    return map(found.of, sorted(found.names))


class _Rows:
    """Rows of the tables about one group, or about all."""

    def __init__(self, stream: StreamEvidence, only: str | None) -> None:
        self._stream, tables = stream, stream.tables
        wanted = None if only is None else pc.field("group_id") == only
        is_old = partial(with_is_old, limit=limit_of(stream.config))
        self._lags = _ByGroup(tables, "partition_lag", _LAG, wanted, prepared=is_old)
        self._groups = _ByGroup(tables, "consumer_groups", _GROUP, wanted, prepared=with_known_members)
        self._decisions = _ByGroup(tables, "plan_state", _DECISION, wanted)
        self._acks = _ByGroup(tables, "acks", _ACKS, wanted)
        self._orders = _ByGroup(tables, "orders", ("group_id", *ORDERS), wanted)
        self._topics = defaultdict[str, list[Row]](list)
        of_topics = None
        if only is not None:
            of_topics = pc.field("topic").isin(pa.array(self._topics_of(only), pa.string()))
        for row in rows_of(tables, "topic_offsets", _TOPICS, of_topics):
            self._topics[row["topic"]].append(row)
        self._quarantined = defaultdict[str | None, list[Row]](list)
        for row in rows_of(tables, "quarantine", _QUARANTINE):
            self._quarantined[_group_of(row["key"])].append(row)

    @property
    def names(self) -> set[str]:
        """Names of the groups that the tables list."""
        return self._lags.names | self._groups.names

    def _topics_of(self, group_id: str) -> list[str]:
        """Those that the group subscribes to or has committed to."""
        members = (self._groups.only(group_id) or {}).get("members") or ()
        subscribed = {name for member in members for name in member["topics"] or ()}
        return sorted({row["topic"] for row in self._lags.rows(group_id)} | subscribed)

    def of(self, group_id: str) -> GroupEvidence:
        """Return the evidence about one group."""
        return GroupEvidence(
            group_id=group_id,
            stream=self._stream,
            lags=self._lags.rows(group_id),
            group=self._groups.only(group_id),
            decision=self._decisions.only(group_id),
            acks=self._acks.rows(group_id),
            orders=self._orders.only(group_id),
            topics=[row for name in self._topics_of(group_id) for row in self._topics[name]],
            quarantined=self._quarantined[group_id],
        )


class _ByGroup:
    """A table in Arrow, whose rows become Python one group at a time; empty if there is none."""

    def __init__(
        self,
        tables: Tables,
        name: str,
        columns: Sequence[str],
        wanted: pc.Expression | None,
        *,
        prepared: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> None:
        self._spans: dict[str, tuple[int, int]] = {}
        try:
            self._table = prepared(tables.read(name, columns=columns, where=wanted).sort_by("group_id"))
        except MissingTableError:
            return
        for at, group_id in enumerate(self._table["group_id"].to_pylist()):
            first, count = self._spans.get(group_id, (at, 0))
            self._spans[group_id] = first, count + 1

    @property
    def names(self) -> set[str]:
        return set(self._spans)

    def rows(self, group_id: str) -> list[Row]:
        if group_id not in self._spans:
            return []
        rows: list[Row] = self._table.slice(*self._spans[group_id]).to_pylist()
        return rows

    def only(self, group_id: str) -> Row | None:
        return next(iter(self.rows(group_id)), None)


def listed_groups(tables: Tables) -> list[str]:
    """All groups that the tables list.

    Raises:
        StoreError: They cannot be read.
    """
    names: set[str] = set()
    for table in ("partition_lag", "consumer_groups"):
        names |= {row["group_id"] for row in rows_of(tables, table, ("group_id",))}
    return sorted(names)


def rows_of(
    tables: Tables, name: str, columns: Sequence[str], where: pc.Expression | None = None
) -> list[Row]:
    """Rows of a table, maps as lists of pairs; none of a table that an earlier version has not made."""
    try:
        rows: list[Row] = tables.read(name, columns=columns, where=where).to_pylist()
    except MissingTableError:
        return []
    return rows


def offsets_partition_of(group_id: str, count: int) -> int:
    """Partition of an offsets topic of `count` partitions that holds the group.

    Source: `partitionFor` of Kafka's group coordinator, `Utils.abs(groupId.hashCode()) % count`.
    """
    code = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", units):
        code = (31 * code + unit) & 0xFFFF_FFFF
    signed = code - 2**32 if code >= 2**31 else code
    # Java has no positive counterpart of its least integer; Kafka takes 0.
    return (0 if signed == -(2**31) else abs(signed)) % count


def _group_of(key: bytes | None) -> str | None:
    """The group that the key of a record of the offsets topic names; None when it names none."""
    try:
        return None if key is None else group_id_of(key)
    except DecodeError:
        return None
