"""Traces of the follower as JSON: `python -m tests.support.followers.follow_traces` writes them anew from the state machine."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Change,
    Commit,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    Lost,
    PartitionKey,
    PlanSeen,
    Rejoin,
    Revoked,
    Settings,
    Tell,
    Tick,
    TopicsAway,
    Unassign,
    Undelivered,
    Write,
)
from assignor.protocol import acks, control
from assignor.protocol.acks import AnyAck
from assignor.protocol.marks import split, with_mark

FOLDER = Path(__file__).parents[3] / "assignor/clients/traces/follower"
WALL_MS = 1_769_860_800_000

Json = dict[str, Any]
Moment = tuple[float, Event]
"""When, and what."""

_BARE: Mapping[str, Event] = {
    "revoked": Revoked(),
    "lost": Lost(),
    "topics_away": TopicsAway(),
    "tick": Tick(),
}


def at(events: Sequence[Event], at_s: float) -> list[Moment]:
    """All at that time."""
    return [(at_s, event) for event in events]


def trace(
    about: str, settings: Settings, begin: Sequence[Moment], then: Mapping[str, Sequence[Moment]]
) -> Json:
    """A file: what the state machine does in each entry of `then`."""
    state = FollowerState(settings=settings)
    state, steps = _run(state, begin)
    return {
        "about": about,
        "settings": {
            "group": settings.group,
            "static": settings.static,
            "take_timeout_s": settings.take_timeout_s,
            "doubt_timeout_s": settings.doubt_timeout_s,
            "despite_migration": settings.despite_migration,
        },
        "begin": steps,
        "then": [{"about": name, "steps": _run(state, moments)[1]} for name, moments in then.items()],
    }


def replayed(document: Json) -> Json:
    """The same file, from its settings and events alone."""
    settings = Settings(**document["settings"])
    begin = [_moment(step) for step in document["begin"]]
    then = {entry["about"]: [_moment(step) for step in entry["steps"]] for entry in document["then"]}
    return trace(document["about"], settings, begin, then)


def _run(state: FollowerState, moments: Iterable[Moment]) -> tuple[FollowerState, list[Json]]:
    steps = []
    for at_s, event in moments:
        now = Instant(monotonic_s=at_s, wall_ms=WALL_MS + round(1000 * at_s))
        state, actions = advance(state, event, now)
        steps.append(
            {
                "at_s": at_s,
                "event": event_json(event),
                "actions": [action_json(action) for action in actions],
                "state": {
                    "phase": state.phase.name,
                    "generation": state.generation,
                    "tokens": {f"{t}-{p}": token.mark.name for (t, p), token in sorted(state.tokens.items())},
                },
            }
        )
    return state, steps


def _moment(step: Json) -> Moment:
    return step["at_s"], event_of(step["event"])


def event_json(event: Event) -> Json:  # noqa: PLR0911  # one for each kind
    match event:
        case Assigned():
            fields = {"member": event.member, "generation": event.generation}
            return {"type": "assigned", **fields, "partitions": _partitions(event.places)}
        case PlanSeen():
            return {"type": "plan", "plan": json.loads(control.encode(event.plan)) if event.plan else None}
        case AcksSeen():
            return {"type": "acks", "acks": [ack_json(ack) for ack in event.acks]}
        case Looked():
            return {
                "type": "looked",
                "found": _by_topic({key: _found(one) for key, one in event.found.items()}),
            }
        case Committed():
            return {"type": "committed", "accepted": event.accepted, "offsets": _by_topic(event.offsets)}
        case Undelivered():
            return {"type": "undelivered", "ack": ack_json(event.ack)}
    return {"type": next(name for name, bare in _BARE.items() if bare == event)}


def event_of(document: Json) -> Event:  # noqa: PLR0911  # one for each kind
    kind = document["type"]
    if kind == "assigned":
        places = frozenset((t, p) for t, numbers in document["partitions"].items() for p in numbers)
        return Assigned(member=document["member"], generation=document["generation"], places=places)
    if kind == "plan":
        plan = document["plan"]
        return PlanSeen(plan=control.decode(json.dumps(plan).encode()) if plan else None)
    if kind == "acks":
        return AcksSeen(acks=tuple(_ack_of(ack) for ack in document["acks"]))
    if kind == "looked":
        return Looked(
            found={
                key: Found(offset=one["offset"], mark=split(one["metadata"])[1])
                for key, one in _by_place(document["found"]).items()
            }
        )
    if kind == "committed":
        return Committed(accepted=document["accepted"], offsets=_by_place(document["offsets"]))
    if kind == "undelivered":
        return Undelivered(ack=_ack_of(document["ack"]))
    return _BARE[kind]


def action_json(action: Action) -> Json:  # noqa: PLR0911  # one for each kind
    match action:
        case Assign():
            offsets = _by_topic(action.offsets)
            return {"type": "assign", "partitions": _partitions(action.places), "offsets": offsets}
        case Unassign():
            return {"type": "unassign"}
        case Look():
            return {"type": "look", "partitions": _partitions(action.places)}
        case Commit():
            marks = {key: with_mark("", mark) for key, mark in action.marks.items()}
            return {"type": "commit", "offsets": _by_topic(action.offsets), "marks": _by_topic(marks)}
        case Write():
            return {"type": "write", "ack": ack_json(action.ack)}
        case Rejoin():
            return {"type": "rejoin"}
        case Tell():
            change = {Change.GAINED: "gained", Change.REVOKED: "revoked", Change.LOST: "lost"}[action.change]
            return {"type": "tell", "change": change, "partitions": _partitions(action.places)}


def ack_json(ack: AnyAck) -> Json:
    return {"key": json.loads(acks.encode_key(ack)), "value": json.loads(acks.encode(ack))}


def _ack_of(document: Json) -> AnyAck:
    def as_written(part: Json) -> bytes:
        return json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()

    return acks.decode(as_written(document["key"]), as_written(document["value"]))


def _partitions(places: Iterable[PartitionKey]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(places):
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _by_topic(values: Mapping[PartitionKey, Any]) -> dict[str, dict[str, Any]]:
    by_topic: dict[str, dict[str, Any]] = {}
    for topic, number in sorted(values):
        by_topic.setdefault(topic, {})[str(number)] = values[topic, number]
    return by_topic


def _by_place(document: Json) -> dict[PartitionKey, Any]:
    return {(t, int(p)): value for t, by_number in document.items() for p, value in by_number.items()}


def _found(found: Found) -> Json:
    return {"offset": found.offset, "metadata": with_mark("", found.mark) if found.mark else ""}


def text_of(document: Json) -> str:
    """As in its file: a line for each step."""

    def lines(steps: Sequence[Json], indent: str) -> str:
        inner = f",\n{indent}".join(json.dumps(step, ensure_ascii=False) for step in steps)
        return f"\n{indent}{inner}" if steps else ""

    then = ",\n".join(
        f'  {{"about":{json.dumps(entry["about"], ensure_ascii=False)},"steps":[{lines(entry["steps"], "    ")}]}}'
        for entry in document["then"]
    )
    return (
        f'{{"about":{json.dumps(document["about"], ensure_ascii=False)},\n'
        f'"settings":{json.dumps(document["settings"])},\n'
        f'"begin":[{lines(document["begin"], "  ")}],\n'
        f'"then":[\n{then}\n]}}\n'
    )


def main() -> None:
    """Write all files."""
    from tests.support.followers.follow_trace_stories import all_documents  # noqa: PLC0415  # it is made from this module

    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, document in all_documents().items():
        (FOLDER / f"{name}.json").write_text(text_of(document), encoding="utf-8")


if __name__ == "__main__":
    main()
