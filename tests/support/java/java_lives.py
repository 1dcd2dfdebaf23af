"""Random lives of a member: what it reads, joins with, decides and receives, for Java's and Python's members.

A life is a JSON document as `Replay.java` reads it. `answers` has Python's member live it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from assignor.clients.control import ControlState
from assignor.clients.plugin.leader import Joined, decide
from assignor.clients.plugin.membership import Membership, following
from assignor.clients.plugin.user_data import (
    AssignmentData,
    Outcome,
    SubscriptionData,
    assignment_data_of,
    decode_subscription_data,
    encode_assignment_data,
    encode_subscription_data,
)
from assignor.model.assignment import Unassigned
from assignor.protocol import acks, control
from assignor.protocol.control import ControlRecord
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.kafka.sticky import Claims
from assignor.protocol.ranges import format_ranges, parse_ranges
from assignor.strategies.registry import strategy
from tests.support.followers.plans import plan

Document = dict[str, Any]
Owners = dict[tuple[str, int], str]

CLUSTER, GROUP = "local", "g"
NOW_MS = 1_700_000_000_000
IDS = ("a", "b", "B", "ä", "\U0001f600", "\uffee")
COUNTS = {"t": 4, "u": 2, "\u00fc": 1}
REASONS = (
    Unassigned.BEYOND_JOIN.words,
    Unassigned.OWNER_DOES_NOT_READ.words,
    Unassigned.NOBODY_TAKES.words,
    "?",
)


def life(random: Random) -> Document:
    """A life of a few events. Most plans fit, and each rule is broken now and then."""
    cooperative = random.random() < 0.5
    events: list[Document] = []
    for epoch in range(1, random.randint(2, 3)):
        events += _round(random, epoch)
    return {"cluster": CLUSTER, "group": GROUP, "cooperative": cooperative, "events": events}


def _round(random: Random, epoch: int) -> Iterator[Document]:
    ids = sorted(random.sample(IDS, random.randint(1, 4)))
    generation = random.randint(5, 8)
    base, target = _dealt(random, ids), _dealt(random, ids)
    record = _plan(random, ids, base, target, epoch=epoch + random.choice([0, 0, 5]), generation=generation)
    yield from _feeds(random, record)
    yield {
        "do": "lead",
        "now": NOW_MS,
        "counts": {topic: format_ranges(range(count)) for topic, count in COUNTS.items()},
        "members": {name: _member(random, name, base, target, generation) for name in _meddled(random, ids)},
    }
    yield _assigned(random, epoch, generation)
    yield {"do": "rejoin", "now": NOW_MS}
    if random.random() < 0.2:
        yield {"do": "lost"}
    yield {"do": "join"}


def _dealt(random: Random, ids: list[str]) -> Owners:
    return {(topic, n): random.choice(ids) for topic, count in COUNTS.items() for n in range(count)}


def _meddled(random: Random, ids: list[str]) -> list[str]:
    """The members, or others."""
    return ids if random.random() < 0.9 else [*ids[1:], "stranger"]


def _plan(
    random: Random, ids: list[str], base: Owners, target: Owners, *, epoch: int, generation: int
) -> ControlRecord:
    unassigned: dict[str, dict[str, tuple[int, ...]]] = {}
    if random.random() < 0.2:
        place = random.choice(sorted(target))
        if random.random() < 0.8:
            target = {one: owner for one, owner in target.items() if one != place}
        reasons = random.sample(REASONS, random.randint(0, 2))
        unassigned = {reason: {place[0]: (place[1],)} for reason in reasons}
    if random.random() < 0.1:
        target = {**target, ("t", random.randint(0, 9)): random.choice(ids)}
    record = plan(
        {name: _of(base, name) for name in ids},
        {name: _of(target, name) for name in ids},
        epoch=epoch,
        generation=generation + (random.random() < 0.1),
        strategy=random.choice(["lag-sticky", "sticky-stream-join"]),
        unassigned=unassigned,
    )
    if random.random() < 0.1:
        # Some partition twice, or once in the base of two.
        extra = random.choice(ids)
        member = record.members[extra]
        twice = {**dict(member.target), "u": (0,)}
        changed = random.choice([replace(member, target=twice), replace(member, base=twice)])
        record = replace(record, members={**record.members, extra: changed})
    oddity = random.random()
    if oddity < 0.05:
        record = replace(record, dry_run=True)
    elif oddity < 0.1:
        record = replace(record, valid_until_ms=NOW_MS + random.randint(-1, 1))
    return record


def _feeds(random: Random, record: ControlRecord) -> Iterator[Document]:
    key, value = control.encode_key(record.cluster, record.group), control.encode(record)
    if random.random() < 0.1:
        yield _feed(control.encode_key(CLUSTER, "other"), value)
    if random.random() < 0.3:
        yield _feed(key, _damaged(random, value))
        yield _feed(key, b'{"x":' + _text(random, 3).encode() + b"," + value[1:])
    yield _feed(key, value)
    if random.random() < 0.1:
        header = random.choice([b"%d" % (record.epoch + random.randint(-1, 1)), b"x", b"", None, b"9" * 20])
        yield _feed(key, None, [("schema", b"1"), ("epoch", header), ("epoch", b"1")][: random.randint(0, 3)])


def _damaged(random: Random, data: bytes) -> bytes:
    """The bytes with one part taken out, repeated, or replaced by something that JSON or the record has elsewhere."""
    start = random.randrange(len(data))
    end = min(len(data), start + random.choice([1, 1, 2, 9]))
    parts = [
        b"",
        data[start:end] * 2,
        b"0",
        b"-1",
        b"null",
        b"1.0",
        b"true",
        b" ",
        b"\n",
        b"\\u00e9",
        b"\\ud800",
    ]
    parts += [b"1e9", b"0-1", b"99999999999999999999", b"\xff", b"\xc3\xa4", b"{}", b"[]", b'"', b",", b"NaN"]
    return data[:start] + random.choice(parts) + data[end:]


_TOKENS = r"""
0 -0 1 -1 01 00 -01 1. .5 1.5 -1.5 +1 1e5 1E+5 1e-5 1e 1e+ 1.e5 0e0 0x1 1_0 - -a NaN Infinity -Infinity 1e999
9223372036854775807 9223372036854775808 true false null True nul nulll tru "" "a" 'a' a "a a" "ä" "\u00e4" "\u00E4"
"\ud800" "\ud83d\ude00" "\u12" "\u12g4" "\u+123" "\x" "\/" "\b\f\n\r\t" "\" {} [] { [ } ] [,] [1,] {,} {"a"}
{"a":} {"a":1,} {a:1} {1:1}
"""
_SCALARS = (
    *_TOKENS.split(),
    '"\U0001f600"',
    '"\x01"',
    '"\x7f"',
    "\ufeff1",
    "[" * 400 + "]" * 400,
)


def _text(random: Random, deepest: int) -> str:
    """Something like JSON; most of it is."""
    space = random.choice(["", "", "", " ", "\t\n\r ", "\v", "\u00a0"][: random.choice([5, 5, 5, 7])])
    if deepest == 0 or random.random() < 0.4:
        return space + random.choice(_SCALARS[: random.choice([4, len(_SCALARS)])]) + space
    items = [_text(random, deepest - 1) for _ in range(random.randint(0, 3))]
    if random.random() < 0.5:
        return f"{space}[{','.join(items)}]"
    fields = [f'{space}"{number % 2}"{space}:{item}' for number, item in enumerate(items)]
    return "{" + ",".join(fields) + space + "}"


def _feed(key: bytes, value: bytes | None, headers: Any = ()) -> Document:
    named = [{"name": name, "value": None if header is None else header.hex()} for name, header in headers]
    return {
        "do": "feed",
        "key": key.hex(),
        "value": None if value is None else value.hex(),
        "headers": named,
    }


def _member(random: Random, name: str, base: Owners, target: Owners, generation: int) -> Document:
    owners = random.choice([base, base, target])
    owned: dict[str, tuple[int, ...]] = dict(_of(owners, name))
    if random.random() < 0.05:
        owned["t"] = tuple(sorted({*owned.get("t", ()), random.randint(0, 6)}))
    claimed = generation if random.random() < 0.9 else random.randint(-1, 9)
    held = random.random() < 0.4
    # A Java assignor that did not hear of a loss claims to hold what its client has given up.
    stale = held and random.random() < 0.2
    data = SubscriptionData(
        claims=Claims(owned=owned, generation=claimed), plan_epoch=random.randint(0, 9), held=held
    )
    user_data: bytes | None = encode_subscription_data(data)
    if random.random() < 0.05:
        user_data, held = random.choice([None, b"", b"\xff\xff", (user_data or b"")[:-1]]), False
    topics = list(COUNTS) if random.random() < 0.8 else random.sample([*COUNTS, "gone"], random.randint(0, 3))
    return {
        "instance": random.choice([None, None, None, "i" + name, "i"]),
        "topics": dict.fromkeys(topics, ""),
        "user_data": None if user_data is None else user_data.hex(),
        "owned": {t: format_ranges(numbers) for t, numbers in owned.items()} if held and not stale else {},
        "generation": -1,
        "stale": stale,
    }


def _assigned(random: Random, epoch: int, generation: int) -> Document:
    data = AssignmentData(
        epoch=random.choice([0, epoch, epoch, epoch]),
        outcome=random.choice(list(Outcome)),
        why=random.choice(["", 'a "why" \\ \n\x01 ü']),
    )
    user_data = random.choice([encode_assignment_data(data)] * 9 + [None, b"\0", b""])
    return {
        "do": "assigned",
        "partitions": {"t": random.choice(["", "0-2"]), "u": "1"},
        "user_data": None if user_data is None else user_data.hex(),
        "generation": generation,
        "member": random.choice(IDS),
        "now": NOW_MS,
    }


def _of(owners: Owners, name: str) -> dict[str, tuple[int, ...]]:
    topics = sorted({topic for (topic, _), owner in owners.items() if owner == name})
    return {
        t: tuple(sorted(n for (topic, n), o in owners.items() if (topic, o) == (t, name))) for t in topics
    }


def _by_topic(ranges: Mapping[str, str]) -> TopicPartitions:
    return {topic: parse_ranges(text, at_most=1000) for topic, text in ranges.items()}


class PythonMember:
    """Lives a life as the plug-ins of kafka-python and aiokafka do."""

    def __init__(self, document: Document) -> None:
        self._control = ControlState(cluster=CLUSTER, group=GROUP)
        self._membership: Membership = following(self._control)
        self._cooperative = document["cooperative"]
        self._held: TopicPartitions = {}

    def answer(self, event: Document) -> Any:
        """What `Replay.java` answers to the same event."""
        return getattr(self, "_" + event["do"])(event)

    def _feed(self, event: Document) -> str:
        headers = [(one["name"], _bytes(one["value"])) for one in event["headers"]]
        return self._control.feed(_bytes(event["key"]), _bytes(event["value"]), headers).name

    def _lead(self, event: Document) -> Document:
        counts = {topic: len(numbers) for topic, numbers in _by_topic(event["counts"]).items()}
        members = [joined(name, member) for name, member in event["members"].items()]
        decision = decide(
            counts=counts,
            members=members,
            strategy=strategy("sticky"),
            plan=self._control.plan(NOW_MS),
        )
        answers = self._membership.lead(counts=counts, members=members, now_ms=NOW_MS)
        told = {assignment_data_of(data).why for _, data in answers.values()} - {""}
        return {
            "epoch": decision.plan_epoch,
            "why": told.pop() if told else decision.why,
            "placed": {n: {t: list(p) for t, p in placed.items()} for n, (placed, _) in answers.items()},
            "user_data": {name: data.hex() for name, (_, data) in answers.items()},
        }

    def _assigned(self, event: Document) -> Document | None:
        partitions = {t: numbers for t, numbers in _by_topic(event["partitions"]).items() if numbers}
        self._held = partitions if self._cooperative else {}
        ack = self._membership.assigned(
            partitions,
            _bytes(event["user_data"]),
            event["generation"],
            member=event["member"],
            now_ms=event["now"],
        )
        return ack and {"key": acks.encode_key(ack).hex(), "value": acks.encode(ack).hex()}

    def _rejoin(self, event: Document) -> bool:
        return self._membership.wants_rejoin(event["now"])

    def _lost(self, _: Document) -> None:
        self._held = {}

    def _join(self, _: Document) -> SubscriptionData:
        return decode_subscription_data(self._membership.user_data(self._held))


def joined(name: str, member: Document) -> Joined:
    """The member as Python's leader sees it; a member whose claim is stale has stated that."""
    user_data = _bytes(member["user_data"])
    if member["stale"] and user_data:
        user_data = user_data[:-1] + b"\0"
    return Joined(
        member_id=name,
        topics=list(member["topics"]),
        user_data=user_data,
        instance_id=member["instance"],
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
