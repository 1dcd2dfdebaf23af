"""Our own member lives every trace of the leader as it is written; and the traces have all that can happen."""

import json
from collections import Counter
from typing import Any

import pytest

from assignor.clients.control import Fed
from assignor.clients.plugin.user_data import Outcome, assignment_data_of
from assignor.protocol import acks
from assignor.protocol.acks import Applied, Refused, Void
from tests.support.followers.leader_traces import FOLDER, Document, Replayed, traces

TRACES = dict(traces())
STEPS = [step for trace in TRACES.values() for step in trace["steps"]]


@pytest.mark.parametrize("name", TRACES)
def test_member_does_what_the_trace_says(name: str) -> None:
    trace = TRACES[name]
    member = Replayed(trace)

    lived = [member.answer(step["event"]) for step in trace["steps"]]

    assert lived == [step["expect"] for step in trace["steps"]]


def expected(event: str, field: str) -> list[Any]:
    return [step["expect"][field] for step in STEPS if step["event"]["type"] == event]


def answers() -> list[Document]:
    return [answer for by_member in expected("lead", "answers") for answer in by_member.values()]


def test_traces_have_every_kind_of_record() -> None:
    assert set(expected("record", "record")) == {fed.name for fed in Fed}


def test_traces_have_every_outcome_and_every_acknowledgement() -> None:
    outcomes = {
        assignment_data_of(bytes.fromhex(a["user_data"])).outcome for a in answers() if a["user_data"]
    }
    said = {
        type(acks.decode(ack["key"].encode(), ack["value"].encode()))
        for ack in expected("assigned", "ack")
        if ack
    }

    assert outcomes == set(Outcome)
    assert said == {Applied, Refused, Void}


@pytest.mark.parametrize(
    "reason",
    [
        "is for other members",
        "no member knows one after",
        "places partitions that are not there",
        "does not give exactly one place",
        "gives to a member that does not read it",
        "meets two claims of one generation",
        "is neither from nor for the owner",
        "is over by the leader's clock",
    ],
)
def test_traces_have_every_reason_to_refuse(reason: str) -> None:
    whys = [assignment_data_of(bytes.fromhex(a["user_data"])).why for a in answers() if a["user_data"]]

    assert any(reason in why for why in whys)


def test_traces_have_both_answers_to_every_question() -> None:
    assert Counter(expected("look", "rejoins")).keys() == {True, False}
    assert {epoch is None for epoch in expected("lead", "awaits_epoch")} == {True, False}
    assert {epoch is None for epoch in expected("lead", "plan_epoch")} == {True, False}


def test_traces_are_files_of_the_package() -> None:
    assert len(TRACES) >= 19
    assert all(json.dumps(trace["about"]) for trace in TRACES.values())
    assert (FOLDER / "README.md").exists()
