"""The record of the control topic, which says what each member of a group should read.

    key      {"cluster":"…","group":"…"}      exactly so: compaction compares bytes
    value    null = the plan is withdrawn, else
             {"schema":1,"cluster":"…","group":"…","epoch":17,"strategy":"…","dry_run":false,
              "created_at":"2026-01-31T12:00:00.000Z","valid_until":"…Z",
              "base":{"generation":42,"protocol":"range"},"migration":"disabled",
              "members":{"<member id>":{"instance":null,"client":"…","host":"…",
                                        "base":{"<topic>":"0-5,9"},"target":{"<topic>":"0-4"}}},
              "moves":[{"topic":"…","partition":9,"from":"<member id>","to":"<member id>"}],
              "unassigned":{"<reason>":{"<topic>":"7"}},
              "why":{"drain_s_before":412.0,"drain_s_after":121.5,"drain_s_bound":119.8,"lag":184203}}
    headers  schema, epoch as decimal text

A plan for a KIP-848 group, which the broker assigns, has "group_protocol":"consumer" behind `dry_run`, and the group
epoch for its generation.

Equal records give equal bytes, whatever the order of their mappings. Later schemas add fields; a reader
ignores those it does not know, takes an absent `unassigned` for an empty one, an absent `migration` for
`unknown`, and an absent `group_protocol` for `classic`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignor.errors import ControlRecordTooLargeError, EncodeError
from assignor.protocol.instants import format_instant, parse_instant
from assignor.protocol.json_fields import Fields, parse_fields
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.migration import Migration, migration_of
from assignor.protocol.ranges import format_ranges, parse_ranges

SCHEMA = 1
DEFAULT_LIMIT_BYTES = 1_000_000
"""Below the 1,048,588 bytes that a broker takes by default, with room for key, headers and framing."""

MAX_PARTITIONS = 2_000_000
"""Ranges are short and partitions are not: more than these, base and target together, are not spread out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlMember:
    """One member of the group, as it is and as it should be."""

    instance: str | None
    """Group instance id, or None for a dynamic member."""
    client: str
    """Client id; for people."""
    host: str
    """For people."""
    base: TopicPartitions
    """Partitions it has in the base generation."""
    target: TopicPartitions
    """Partitions it should have in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlMove:
    """A partition that changes hands; member ids, None for nobody."""

    topic: str
    partition: int
    from_member: str | None
    to_member: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReasons:
    """Why the plan is worth its moves; None where unknown or never."""

    drain_s_before: float | None
    drain_s_after: float | None
    drain_s_bound: float | None
    lag: int
    """Total lag of the group in records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """A plan for one group: always the final target, never a phase on the way."""

    cluster: str
    group: str
    epoch: int
    """Plan epoch, >= 1, rising with each plan of the group for ever."""
    strategy: str
    dry_run: bool
    """Nobody should follow; for people to look at."""
    created_at_ms: int
    valid_until_ms: int
    base_generation: int
    """Generation of the group that the plan was made for."""
    base_protocol: str
    """Assignor of that generation."""
    group_protocol: str = "classic"
    """Kafka's `group.protocol` of the group: members follow a plan for `classic`, the broker one for `consumer`."""
    migration: Migration = "unknown"
    """Whether a KIP-848 member may migrate the group: then nobody may follow within a generation."""
    members: Mapping[str, ControlMember]
    """By member id."""
    moves: tuple[ControlMove, ...]
    unassigned: Mapping[str, TopicPartitions]
    """Partitions without a place, by reason."""
    why: ControlReasons


def encode_key(cluster: str, group: str) -> bytes:
    """Key of the group's record."""
    return _dump({"cluster": cluster, "group": group})


def decode_key(key: bytes) -> tuple[str, str]:
    """Cluster and group of a key.

    Raises:
        DecodeError: Not such a key.
    """
    fields = parse_fields(key)
    return fields.text("cluster"), fields.text("group")


def headers(epoch: int) -> list[tuple[str, bytes]]:
    """Headers of a record, also of a withdrawal, which has no value to hold the epoch."""
    return [("schema", str(SCHEMA).encode()), ("epoch", str(epoch).encode())]


def encode(record: ControlRecord, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Value of the record.

    Raises:
        ControlRecordTooLargeError: More than `limit_bytes`.
        EncodeError: A number that is not finite, half a surrogate pair, a time after the year 9999.
    """
    value = _dump(
        {
            "schema": SCHEMA,
            "cluster": record.cluster,
            "group": record.group,
            "epoch": record.epoch,
            "strategy": record.strategy,
            "dry_run": record.dry_run,
            # Without it the bytes are those of versions that knew classic groups alone.
            **({} if record.group_protocol == "classic" else {"group_protocol": record.group_protocol}),
            "created_at": format_instant(record.created_at_ms),
            "valid_until": format_instant(record.valid_until_ms),
            "base": {"generation": record.base_generation, "protocol": record.base_protocol},
            "migration": record.migration,
            "members": {name: _member_json(record.members[name]) for name in sorted(record.members)},
            "moves": [_move_json(move) for move in sorted(record.moves, key=_place_of)],
            "unassigned": {why: _ranges_json(record.unassigned[why]) for why in sorted(record.unassigned)},
            "why": {
                "drain_s_before": _plain(record.why.drain_s_before),
                "drain_s_after": _plain(record.why.drain_s_after),
                "drain_s_bound": _plain(record.why.drain_s_bound),
                "lag": record.why.lag,
            },
        }
    )
    if len(value) > limit_bytes:
        raise ControlRecordTooLargeError(record.group, len(value), limit_bytes)
    return value


def decode(value: bytes) -> ControlRecord:
    """The record in a value.

    Raises:
        DecodeError: Not JSON, a field missing or of a wrong type, more than `MAX_PARTITIONS` partitions.
    """
    fields = parse_fields(value)
    fields.integer("schema", least=SCHEMA)
    base, why = fields.fields("base"), fields.fields("why")
    ranges = _RangesReader()
    members = fields.fields("members")
    return ControlRecord(
        cluster=fields.text("cluster"),
        group=fields.text("group"),
        epoch=fields.integer("epoch", least=1),
        strategy=fields.text("strategy"),
        dry_run=fields.boolean("dry_run"),
        group_protocol=fields.text("group_protocol") if fields.has("group_protocol") else "classic",
        created_at_ms=parse_instant(fields.text("created_at")),
        valid_until_ms=parse_instant(fields.text("valid_until")),
        base_generation=base.integer("generation", least=-1),
        base_protocol=base.text("protocol"),
        migration=migration_of(fields.text("migration")) if fields.has("migration") else "unknown",
        members={name: _read_member(members.fields(name), ranges) for name in members.names()},
        moves=tuple(_read_move(move) for move in fields.list_of_fields("moves")),
        unassigned=_read_unassigned(fields, ranges),
        why=ControlReasons(
            drain_s_before=why.nullable_number("drain_s_before"),
            drain_s_after=why.nullable_number("drain_s_after"),
            drain_s_bound=why.nullable_number("drain_s_bound"),
            lag=why.integer("lag", least=0),
        ),
    )


class _RangesReader:
    """Reads topic → ranges, with one limit on the partitions of the whole record."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_PARTITIONS

    def by_topic(self, fields: Fields) -> TopicPartitions:
        return {topic: self._partitions(fields.text(topic)) for topic in fields.names()}

    def _partitions(self, text: str) -> tuple[int, ...]:
        partitions = parse_ranges(text, at_most=self._left)
        self._left -= len(partitions)
        return partitions


def _read_member(fields: Fields, ranges: _RangesReader) -> ControlMember:
    return ControlMember(
        instance=fields.nullable_text("instance"),
        client=fields.text("client"),
        host=fields.text("host"),
        base=ranges.by_topic(fields.fields("base")),
        target=ranges.by_topic(fields.fields("target")),
    )


def _read_move(fields: Fields) -> ControlMove:
    return ControlMove(
        topic=fields.text("topic"),
        partition=fields.integer("partition", least=0),
        from_member=fields.nullable_text("from"),
        to_member=fields.nullable_text("to"),
    )


def _read_unassigned(fields: Fields, ranges: _RangesReader) -> Mapping[str, TopicPartitions]:
    if not fields.has("unassigned"):
        return {}
    by_reason = fields.fields("unassigned")
    return {reason: ranges.by_topic(by_reason.fields(reason)) for reason in by_reason.names()}


def _member_json(member: ControlMember) -> dict[str, Any]:
    return {
        "instance": member.instance,
        "client": member.client,
        "host": member.host,
        "base": _ranges_json(member.base),
        "target": _ranges_json(member.target),
    }


def _move_json(move: ControlMove) -> dict[str, Any]:
    return {"topic": move.topic, "partition": move.partition, "from": move.from_member, "to": move.to_member}


def _place_of(move: ControlMove) -> tuple[str, int]:
    return move.topic, move.partition


def _ranges_json(by_topic: TopicPartitions) -> dict[str, str]:
    return {topic: format_ranges(by_topic[topic]) for topic in sorted(by_topic)}


def _plain(seconds: float | None) -> float | None:
    # Takes the sign from -0.0 and gives whole numbers their fraction: equal values, equal bytes.
    return None if seconds is None else seconds + 0.0


def _dump(document: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise EncodeError(f"not encodable: {error}") from error
