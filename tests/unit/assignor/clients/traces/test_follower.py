"""The traces that are shipped are what the state machine does, and cover what it knows."""

import json
from pathlib import Path
from typing import get_args

import pytest

from assignor.clients.follower import trouble
from assignor.clients.follower.state import Action, Event, Mark, Phase
from tests.support.followers.follow_trace_stories import all_documents
from tests.support.followers.follow_traces import FOLDER, Json, replayed, text_of

FILES = sorted(FOLDER.glob("*.json"))
_NAMES = {"PlanSeen": "plan", "AcksSeen": "acks", "TopicsAway": "topics_away"}


def read(file: Path) -> Json:
    document: Json = json.loads(file.read_text(encoding="utf-8"))
    return document


def steps() -> list[Json]:
    documents = [read(file) for file in FILES]
    return [
        step
        for document in documents
        for part in (document["begin"], *(entry["steps"] for entry in document["then"]))
        for step in part
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_replayed_trace_does_what_it_says(file: Path) -> None:
    assert replayed(read(file)) == read(file)


def test_files_are_those_of_the_cases() -> None:
    """Otherwise: `python -m tests.support.followers.follow_traces`, and look at what has changed."""
    assert {file.stem: file.read_text(encoding="utf-8") for file in FILES} == {
        name: text_of(document) for name, document in all_documents().items()
    }


def test_every_state_event_and_action_occurs() -> None:
    assert {step["state"]["phase"] for step in steps()} == {phase.name for phase in Phase}
    marks = {mark for step in steps() for mark in step["state"]["tokens"].values()}
    assert marks == {mark.name for mark in Mark}
    events = {_NAMES.get(kind.__name__, kind.__name__.lower()) for kind in get_args(Event)}
    assert {step["event"]["type"] for step in steps()} == events
    actions = {kind.__name__.lower() for kind in get_args(Action)}
    assert {action["type"] for step in steps() for action in step["actions"]} == actions


def test_every_phase_meets_every_event_that_can_come_in_it() -> None:
    met: dict[str, set[str]] = {phase.name: set() for phase in Phase}
    for document in (read(file) for file in FILES if not file.stem.startswith("story")):
        phase = document["begin"][-1]["state"]["phase"] if document["begin"] else "OUT"
        met[phase] |= {entry["steps"][0]["event"]["type"] for entry in document["then"]}

    events = {_NAMES.get(kind.__name__, kind.__name__.lower()) for kind in get_args(Event)}
    # A commit is answered where it was asked for.
    assert met.pop("FOLLOW") == events
    assert all(kinds == events - {"committed", "looked"} for kinds in met.values())


def test_other_behaviour_fails_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "_is_in_the_midst", lambda _state: False)

    differing = [file.stem for file in FILES if replayed(read(file)) != read(file)]

    assert "story-topics-away-in-the-midst" in differing
