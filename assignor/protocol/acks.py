"""Acknowledgements: records of a plan's followers for one another and the job, on the topic `lagwise.acks`.

    key    {"cluster":"…","group":"…","kind":"…","id":"…"}     exactly so; id is the member id, or <topic>-<p>
    value  {"v":1,"kind":"…","group":"…","gen":42,"epoch":17,"member":"<member id>", …,"at":"2026-…Z"}

    kind      id            besides                        written by
    follows   member                                       a member that follows the plan, by marked commits
    accepted  member                                       a member that follows the plan, by commits without marks
    refused   member        why                            a member that does not
    release   <topic>-<p>   to, topic, p, hop, offset      the old owner, after its marked commit: p is `to`'s now
    taken     <topic>-<p>   topic, p, hop                  the new owner: it reads p
    applied   member                                       a member that has all of its target, and no more
    void      member        why                            a member that follows the plan no longer

`gen` is the generation of the group and `epoch` that of the plan. `hop` counts the hand-overs of one partition
in one generation, from 1. `offset` is the next record to read. All of a group is in one partition of the topic,
so it keeps its order. A record may come again: equal records give equal bytes, and the same `hop` is the same
hand-over. Later versions add fields; a reader ignores those it does not know.

Any client with the right to write to the topic can write any of them. They do not determine the owner of a partition:
the mark of its commit does (`marks`). Versions before 0.2 had no marks and wrote `accepted`, which newer versions no
longer write: older ones do not know `follows`, so they hand nothing over to a member that would not trust them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from assignor.errors import DecodeError, EncodeError
from assignor.protocol.instants import format_instant, parse_instant
from assignor.protocol.json_fields import Fields, parse_fields

VERSION = 1
MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """What every acknowledgement says."""

    cluster: str
    group: str
    generation: int
    epoch: int
    """Epoch of the plan, >= 1."""
    member: str
    """Member id of the sender."""
    at_ms: int
    """When, by its clock; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Follows(Ack):
    """The member follows the plan, marks what it commits for a hand-over, and believes nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Ack):
    """A member of a version before 0.2 follows the plan: its commits have no marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Ack):
    """The member has all of its target, and all that it gave was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Ack):
    """The member stays on its base."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Void(Ack):
    """The member followed the plan and no longer does."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Ack):
    """The member has stopped reading a partition, has committed it with a mark, and gives it to another."""

    to: str
    """Member id."""
    topic: str
    partition: int
    hop: int
    """Number of the hand-over of this partition in this generation, >= 1."""
    offset: int
    """Next record to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken(Ack):
    """The member reads a partition that was released to it."""

    topic: str
    partition: int
    hop: int


AnyAck: TypeAlias = Follows | Accepted | Applied | Refused | Void | Release | Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class AckKey:
    """Whom a record is about, before its value is looked at."""

    cluster: str
    group: str
    kind: str
    id: str


def encode_key(ack: AnyAck) -> bytes:
    """Key of the record.

    Raises:
        EncodeError: Half a surrogate pair.
    """
    return _dump({"cluster": ack.cluster, "group": ack.group, "kind": kind_of(ack), "id": _id_of(ack)})


def key_head(cluster: str, group: str) -> bytes:
    """What the keys of all acknowledgements of a group begin with, and no others."""
    return _dump({"cluster": cluster, "group": group})[:-1] + b","


def decode_key(key: bytes) -> AckKey:
    """What the key says; it is checked against the value by `decode` only.

    Raises:
        DecodeError: Not such a key.
    """
    fields = parse_fields(key)
    return AckKey(
        cluster=fields.text("cluster"),
        group=fields.text("group"),
        kind=fields.text("kind"),
        id=fields.text("id"),
    )


def encode(ack: AnyAck) -> bytes:
    """Value of the record.

    Raises:
        EncodeError: Half a surrogate pair, a time after the year 9999.
    """
    head = {
        "v": VERSION,
        "kind": kind_of(ack),
        "group": ack.group,
        "gen": ack.generation,
        "epoch": ack.epoch,
        "member": ack.member,
    }
    return _dump({**head, **_besides(ack), "at": format_instant(ack.at_ms)})


def decode(key: bytes, value: bytes) -> AnyAck:
    """The acknowledgement in a record.

    Raises:
        DecodeError: Not JSON, a field missing or of a wrong type, an unknown kind, a key of another record.
    """
    fields = parse_fields(value)
    fields.integer("v", least=VERSION)
    kind = fields.text("kind")
    if kind not in _READERS:
        raise DecodeError(f"kind {kind[:40]!a}: unknown", position=0)
    head = {
        "cluster": decode_key(key).cluster,
        "group": fields.text("group"),
        "generation": _int32(fields, "gen"),
        "epoch": fields.integer("epoch", least=1),
        "member": fields.text("member"),
        "at_ms": parse_instant(fields.text("at")),
    }
    ack = _READERS[kind](fields, head)
    if encode_key(ack) != key:
        raise DecodeError("the key does not match the value", position=0)
    return ack


def kind_of(ack: AnyAck) -> str:
    """The name of this class in the record."""
    return type(ack).__name__.lower()


def _read_release(fields: Fields, head: Mapping[str, Any]) -> Release:
    to, offset = fields.text("to"), fields.integer("offset", least=0)
    return Release(**head, **_place(fields), to=to, offset=offset)


_READERS: Mapping[str, Callable[[Fields, Mapping[str, Any]], AnyAck]] = {
    "follows": lambda fields, head: Follows(**head),  # noqa: ARG005  # has nothing besides
    "accepted": lambda fields, head: Accepted(**head),  # noqa: ARG005  # has nothing besides
    "applied": lambda fields, head: Applied(**head),  # noqa: ARG005  # has nothing besides
    "refused": lambda fields, head: Refused(**head, why=fields.text("why")),
    "void": lambda fields, head: Void(**head, why=fields.text("why")),
    "release": _read_release,
    "taken": lambda fields, head: Taken(**head, **_place(fields)),
}


def _place(fields: Fields) -> dict[str, Any]:
    return {
        "topic": fields.text("topic"),
        "partition": _int32(fields, "p"),
        "hop": fields.integer("hop", least=1),
    }


def _int32(fields: Fields, name: str) -> int:
    number = fields.integer(name, least=0)
    if number > MAX_INT32:
        raise DecodeError(f"{name!a}: more than {MAX_INT32}", position=0)
    return number


def _id_of(ack: AnyAck) -> str:
    return f"{ack.topic}-{ack.partition}" if isinstance(ack, Release | Taken) else ack.member


def _besides(ack: AnyAck) -> dict[str, Any]:
    match ack:
        case Refused() | Void():
            return {"why": ack.why}
        case Release():
            place = {"topic": ack.topic, "p": ack.partition, "hop": ack.hop}
            return {"to": ack.to, **place, "offset": ack.offset}
        case Taken():
            return {"topic": ack.topic, "p": ack.partition, "hop": ack.hop}
        case _:
            return {}


def _dump(document: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"not encodable: {error}") from error
