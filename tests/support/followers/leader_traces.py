"""Replays the traces of the plug-ins' leader on this package's member; `traces/leader/README.md` has the format."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from assignor.clients.control import ControlState
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.leader import decide
from assignor.clients.plugin.membership import PLAN_ASSIGNOR, Membership, following, under_strategy
from assignor.protocol import acks
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.ranges import format_ranges, parse_ranges
from assignor.strategies.registry import strategy

FOLDER = Path(__file__).parents[3] / "assignor" / "clients" / "traces" / "leader"

Document: TypeAlias = dict[str, Any]


def traces() -> Iterator[tuple[str, Document]]:
    """Name and content of each trace."""
    for path in sorted(FOLDER.glob("*.json")):
        yield path.stem, json.loads(path.read_text(encoding="utf-8"))


class Replayed:
    """This package's member in the part that a trace gives it."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self._member = trace["member"]
        self._name = trace["assignor"]
        self._control = ControlState(cluster=trace["cluster"], group=trace["group"])
        follows = self._name == PLAN_ASSIGNOR
        self._membership: Membership = following(self._control) if follows else under_strategy(self._name)

    def answer(self, event: Document) -> Document:
        """What is expected of an implementation at this event."""
        answer: Document = getattr(self, f"_{event['type']}")(event)
        return answer

    def _record(self, event: Document) -> Document:
        headers = [(name, text.encode()) for name, text in event["headers"].items()]
        value = None if event["value"] is None else event["value"].encode()
        return {"record": self._control.feed(event["key"].encode(), value, headers).name}

    def _join(self, event: Document) -> Document:
        return {"user_data": _hex(self._membership.user_data(_by_topic(event["held"])))}

    def _lead(self, event: Document) -> Document:
        members = [_joined(name, member) for name, member in event["members"].items()]
        awaited = self._membership.awaits(members)
        plan = self._control.plan(event["now_ms"])
        name = "sticky" if self._name == PLAN_ASSIGNOR else self._name
        decision = decide(counts=event["partitions"], members=members, strategy=strategy(name), plan=plan)
        answers = self._membership.lead(counts=event["partitions"], members=members, now_ms=event["now_ms"])
        return {
            "awaits_epoch": awaited,
            "plan_epoch": decision.plan_epoch if self._name == PLAN_ASSIGNOR else None,
            "answers": {
                member_id: {"partitions": _ranges(placed), "user_data": _hex(data)}
                for member_id, (placed, data) in answers.items()
            },
        }

    def _assigned(self, event: Document) -> Document:
        ack = self._membership.assigned(
            _by_topic(event["partitions"]),
            _bytes(event["user_data"]),
            event["generation"],
            member=self._member,
            now_ms=event["now_ms"],
        )
        sent = ack and {"key": acks.encode_key(ack).decode(), "value": acks.encode(ack).decode()}
        return {"ack": sent}

    def _look(self, event: Document) -> Document:
        return {"rejoins": self._membership.wants_rejoin(event["now_ms"])}


def _joined(name: str, member: Document) -> Joined:
    owned = member["owned"]
    return Joined(
        member_id=name,
        topics=member["topics"],
        user_data=_bytes(member["user_data"]),
        owned=None if owned is None else _by_topic(owned),
        generation=member["generation"],
    )


def _by_topic(ranges: Mapping[str, str]) -> TopicPartitions:
    return {topic: parse_ranges(text, at_most=1000) for topic, text in ranges.items()}


def _ranges(placed: TopicPartitions) -> dict[str, str]:
    return {topic: format_ranges(numbers) for topic, numbers in placed.items()}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
