"""Standing orders of an operator for one group, on the topic `lagwise.commands`.

    key    {"cluster":"…","group":"…"}      exactly that of the control topic: compaction compares bytes
    value  null = no orders, else
           {"schema":1,"paused":false,"reason":"","pinned":{"<topic>":"0-3,7","<other topic>":"*"},
            "triggered_at":null,"by":"user@host","at":"2026-01-31T12:00:00.000Z",
            "approved":{"target":"3f2a…","base":"91bc…","reason":"","by":"user@host","at":"…"},
            "resumed_at":"2026-01-31T12:00:00.000Z"}

The topic is compacted by group, so a record is the whole of what holds for the group, not a change of it: who
gives an order reads the record that is there, changes it and writes it back. `*` pins every partition of a
topic. `approved` is absent while no plan was ever approved, `resumed_at` before the first resume. Equal orders
give equal bytes. Later schemas add fields; a reader ignores those it does not know.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.errors import DecodeError, EncodeError
from assignor.protocol import control
from assignor.protocol.instants import format_instant, parse_instant
from assignor.protocol.json_fields import Fields, parse_fields
from assignor.protocol.ranges import format_ranges, parse_ranges

SCHEMA = 1
ALL = "*"
"""What stands for every partition of a topic."""

MAX_PARTITIONS = 100_000
"""Most partitions that one record pins by number; ranges are short and partitions are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An operator wants the plan published that he has looked at, and no other."""

    target_hash: str
    """Hash of the plan's target."""
    base_hash: str
    """Hash of the group that the plan starts from. From another one the same target takes other moves."""
    reason: str = ""
    """For people."""
    by: str = ""
    """Who has approved it; for people. Later orders of others leave it."""
    at_ms: int = 0
    """When; later than every earlier approval of the group."""

    @property
    def hashes(self) -> tuple[str, str]:
        """What the plan has."""
        return self.target_hash, self.base_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What holds for a group until somebody says otherwise; without arguments: nothing."""

    cluster: str
    group: str
    paused: bool = False
    """No plan is published."""
    pause_reason: str = ""
    """For people."""
    pinned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Partitions that no plan moves, ascending, by topic; an empty tuple is all partitions of the topic."""
    triggered_at_ms: int | None = None
    """Newest manual trigger: no guard holds back the first plan after it."""
    resumed_at_ms: int | None = None
    """Newest resume: it ends a probation, the time without plans after one that hurt."""
    approval: Approval | None = None
    """Newest approval of a plan."""
    at_ms: int = 0
    """When the newest order was given, by the clock of the one who gave it."""
    by: str = ""
    """Who gave it; for people."""


def encode_key(orders: Orders) -> bytes:
    """Key of the record: that of the group's control record.

    Raises:
        EncodeError: Half a surrogate pair.
    """
    return control.encode_key(orders.cluster, orders.group)


def encode(orders: Orders) -> bytes:
    """Value of the record.

    Raises:
        EncodeError: Half a surrogate pair, a time that is not in the years 1 to 9999, a partition that is not
            in 0 to 2^31 - 1, more than `MAX_PARTITIONS` pinned by number.
    """
    if (count := sum(map(len, orders.pinned.values()))) > MAX_PARTITIONS:
        raise EncodeError(
            f"{count} partitions pinned by number, more than {MAX_PARTITIONS}: pin whole topics"
        )
    triggered_at_ms = orders.triggered_at_ms
    document = {
        "schema": SCHEMA,
        "paused": orders.paused,
        "reason": orders.pause_reason,
        "pinned": {topic: format_pin(orders.pinned[topic]) for topic in sorted(orders.pinned)},
        "triggered_at": None if triggered_at_ms is None else format_instant(triggered_at_ms),
        "by": orders.by,
        "at": format_instant(orders.at_ms),
        **_written_approval(orders.approval),
        **_written_resume(orders.resumed_at_ms),
    }
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"not encodable: {error}") from error


def decode(key: bytes, value: bytes | None) -> Orders:
    """The orders in a record; for a null value those that order nothing.

    Raises:
        DecodeError: Not JSON, a field missing or of a wrong type, more than `MAX_PARTITIONS` partitions, a key
            that is not written as `encode_key` writes it and so would be a second record of the group.
    """
    cluster, group = control.decode_key(key)
    if control.encode_key(cluster, group) != key:
        raise DecodeError(
            "the key names a group, but not in the canonical form that compaction needs", position=0
        )
    if value is None:
        return Orders(cluster=cluster, group=group)
    fields = parse_fields(value)
    fields.integer("schema", least=SCHEMA)
    triggered_at = fields.nullable_text("triggered_at")
    return Orders(
        cluster=cluster,
        group=group,
        paused=fields.boolean("paused"),
        pause_reason=fields.text("reason"),
        pinned=_read_pinned(fields.fields("pinned")),
        triggered_at_ms=None if triggered_at is None else parse_instant(triggered_at),
        resumed_at_ms=parse_instant(fields.text("resumed_at")) if fields.has("resumed_at") else None,
        approval=_read_approval(fields),
        at_ms=parse_instant(fields.text("at")),
        by=fields.text("by"),
    )


def format_pin(partitions: tuple[int, ...]) -> str:
    """Pinned partitions of one topic as text: ranges, or `ALL` for the empty tuple.

    Raises:
        EncodeError: A partition that is not in 0 to 2^31 - 1.
    """
    return format_ranges(partitions) if partitions else ALL


def parse_pin(text: str, *, at_most: int = MAX_PARTITIONS) -> tuple[int, ...]:
    """What `format_pin` was given; its text in that form only.

    Raises:
        DecodeError: Another form, no partition, or more than `at_most`.
    """
    if not text:
        raise DecodeError("pinned partitions: none", position=0)
    return () if text == ALL else parse_ranges(text, at_most=at_most)


def _written_approval(approval: Approval | None) -> dict[str, dict[str, str]]:
    if approval is None:
        return {}
    fields = {
        "target": approval.target_hash,
        "base": approval.base_hash,
        "reason": approval.reason,
        "by": approval.by,
        "at": format_instant(approval.at_ms),
    }
    return {"approved": fields}


def _written_resume(resumed_at_ms: int | None) -> dict[str, str]:
    return {} if resumed_at_ms is None else {"resumed_at": format_instant(resumed_at_ms)}


def _read_approval(fields: Fields) -> Approval | None:
    if not fields.has("approved"):
        return None
    given = fields.fields("approved")
    return Approval(
        target_hash=given.text("target"),
        base_hash=given.text("base"),
        reason=given.text("reason"),
        by=given.text("by"),
        at_ms=parse_instant(given.text("at")),
    )


def _read_pinned(fields: Fields) -> dict[str, tuple[int, ...]]:
    pinned: dict[str, tuple[int, ...]] = {}
    left = MAX_PARTITIONS
    for topic in fields.names():
        pinned[topic] = parse_pin(fields.text(topic), at_most=left)
        left -= len(pinned[topic])
    return pinned
