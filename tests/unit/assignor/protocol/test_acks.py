import json
from typing import Any

import pytest

from assignor.errors import DecodeError, EncodeError
from assignor.protocol import acks
from assignor.protocol.acks import Accepted, AnyAck, Applied, Follows, Refused, Release, Taken, Void

HEAD: dict[str, Any] = {
    "cluster": "local",
    "group": "billing",
    "generation": 42,
    "epoch": 17,
    "member": "a-1",
    "at_ms": 1_769_860_800_000,
}
MEMBER_KEY = b'{"cluster":"local","group":"billing","kind":"%s","id":"a-1"}'
PLACE_KEY = b'{"cluster":"local","group":"billing","kind":"%s","id":"in-voices-9"}'
MEMBER_VALUE = b'{"v":1,"kind":"%s","group":"billing","gen":42,"epoch":17,"member":"a-1"%s,"at":"2026-01-31T12:00:00.000Z"}'
RECORDS: dict[str, tuple[AnyAck, bytes, bytes]] = {
    "accepted": (Accepted(**HEAD), MEMBER_KEY, b""),
    "follows": (Follows(**HEAD), MEMBER_KEY, b""),
    "applied": (Applied(**HEAD), MEMBER_KEY, b""),
    "refused": (Refused(**HEAD, why="static"), MEMBER_KEY, b',"why":"static"'),
    "void": (Void(**HEAD, why="revoked"), MEMBER_KEY, b',"why":"revoked"'),
    "release": (
        Release(**HEAD, to="b-2", topic="in-voices", partition=9, hop=1, offset=1234),
        PLACE_KEY,
        b',"to":"b-2","topic":"in-voices","p":9,"hop":1,"offset":1234',
    ),
    "taken": (
        Taken(**HEAD, topic="in-voices", partition=9, hop=1),
        PLACE_KEY,
        b',"topic":"in-voices","p":9,"hop":1',
    ),
}
RELEASE = RECORDS["release"][0]


@pytest.mark.parametrize("kind", RECORDS)
def test_record_and_bytes_stand_for_each_other(kind: str) -> None:
    ack, key_form, besides = RECORDS[kind]
    key, value = key_form % kind.encode(), MEMBER_VALUE % (kind.encode(), besides)

    assert (acks.encode_key(ack), acks.encode(ack)) == (key, value)
    assert acks.decode(key, value) == ack


def test_key_alone_tells_whose_record_it_is() -> None:
    found = acks.decode_key(acks.encode_key(RELEASE))

    assert (found.cluster, found.group, found.kind, found.id) == (
        "local",
        "billing",
        "release",
        "in-voices-9",
    )


def test_unknown_fields_of_a_later_version_are_ignored() -> None:
    value = acks.encode(RELEASE).replace(b'"v":1', b'"v":2,"shiny":{}')

    assert acks.decode(acks.encode_key(RELEASE), value) == RELEASE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("v", 0),
        ("kind", "rumour"),
        ("gen", -1),
        ("gen", 2**31),
        ("epoch", 0),
        ("member", None),
        ("to", 5),
        ("p", -1),
        ("p", 2**31),
        ("hop", 0),
        ("offset", -1),
        ("offset", 1.5),
        ("at", "yesterday"),
        ("group", "another"),
        ("topic", "another"),
        ("kind", "taken"),
    ],
)
def test_wrong_field_is_refused(field: str, value: object) -> None:
    document = {**json.loads(acks.encode(RELEASE)), field: value}

    with pytest.raises(DecodeError):
        acks.decode(acks.encode_key(RELEASE), json.dumps(document).encode())


@pytest.mark.parametrize("field", json.loads(acks.encode(RELEASE)))
def test_missing_field_is_refused(field: str) -> None:
    document = json.loads(acks.encode(RELEASE))
    del document[field]

    with pytest.raises(DecodeError):
        acks.decode(acks.encode_key(RELEASE), json.dumps(document).encode())


def test_half_a_surrogate_pair_is_not_encoded() -> None:
    ack = Refused(**HEAD, why="\ud800")

    with pytest.raises(EncodeError):
        acks.encode(ack)
