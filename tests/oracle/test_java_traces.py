"""The Java member lives the traces of the plug-ins' leader as they are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from assignor.clients.plugin.user_data import assignment_data_of, subscription_data_of
from assignor.protocol.ranges import format_ranges
from tests.support.java.java_jar import java_jar, replayed

FOLDER = Path(__file__).parents[2] / "assignor" / "clients" / "traces" / "leader"
Document = dict[str, Any]


def traces() -> list[Document]:
    """Those of members that follow plans; the jar has no other."""
    read = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [trace for trace in read if trace["assignor"] == "lagwise"]


def as_life(trace: Document) -> Document:
    events = [step["event"] for step in trace["steps"]]
    return {
        "cluster": trace["cluster"],
        "group": trace["group"],
        "cooperative": any(event.get("held") for event in events),
        "events": [as_event(event, trace["member"]) for event in events],
    }


def as_event(event: Document, member: str) -> Document:
    match event["type"]:
        case "record":
            headers = [{"name": name, "value": hexed(text)} for name, text in event["headers"].items()]
            return {
                "do": "feed",
                "key": hexed(event["key"]),
                "value": hexed(event["value"]),
                "headers": headers,
            }
        case "lead":
            counts = {topic: format_ranges(range(count)) for topic, count in event["partitions"].items()}
            members = {
                name: {
                    **one,
                    "instance": None,
                    "topics": dict.fromkeys(one["topics"], ""),
                    "owned": one["owned"] or {},
                }
                for name, one in event["members"].items()
            }
            return {"do": "lead", "now": event["now_ms"], "counts": counts, "members": members}
        case "assigned":
            return {**event, "do": "assigned", "member": member, "now": event["now_ms"]}
        case "look":
            return {"do": "rejoin", "now": event["now_ms"]}
        case _:
            # An assignor in Java does not know what its client holds, but by what it was told.
            return {"do": "join"}


def holds_without_a_field(event: Document) -> bool:
    """Whether a cooperative member has a subscription of version 0, which KIP-429 excludes and Java does not show."""
    members = event.get("members", {}).values()
    return any(
        one["owned"] is None and subscription_data_of(bytes.fromhex(one["user_data"] or "")).held
        for one in members
    )


def hexed(text: str | None) -> str | None:
    return None if text is None else text.encode().hex()


def check(expect: Document, answer: Any) -> None:
    if "answers" not in expect:
        (expected,) = expect.values()
        if isinstance(expected, dict):
            expected = {name: hexed(text) for name, text in expected.items()}
        assert answer == expected
        return
    assert (answer["awaits"], answer["epoch"]) == (expect["awaits_epoch"], expect["plan_epoch"])
    assert answer["user_data"].keys() == expect["answers"].keys()
    for name, one in expect["answers"].items():
        said = assignment_data_of(bytes.fromhex(answer["user_data"][name]))
        assert said == assignment_data_of(bytes.fromhex(one["user_data"]))
        if expect["plan_epoch"] is not None:
            placed = {topic: format_ranges(numbers) for topic, numbers in answer["placed"][name].items()}
            assert placed == one["partitions"]


@pytest.mark.skipif(not FOLDER.is_dir(), reason="there are no traces here")
def test_java_member_does_what_the_traces_say() -> None:
    told = traces()

    lived = replayed(java_jar(), [as_life(trace) for trace in told])

    for trace, answers in zip(told, lived, strict=True):
        for step, answer in zip(trace["steps"], answers, strict=True):
            if holds_without_a_field(step["event"]):
                continue
            try:
                check(step["expect"], answer)
            except AssertionError as error:
                raise AssertionError(f"{trace['about']}: {step['event']} {answer}") from error
    assert len(told) >= 15
