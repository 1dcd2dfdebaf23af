"""Why members do not follow a plan."""

from typing import Any

import pytest

from tests.support.job.frames import at
from tests.support.operate.findings import told
from tests.support.operate.patient import BATCH_MS, Patient, group, plan

_TARGET = "the group has its target assignment"


def ack(member_id: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A row of `acks`, about the plan."""
    known = {
        "kind": kind,
        "id": member_id,
        "member_id": member_id,
        "epoch": 7,
        "generation": 17,
        "acked_at": at(-200),
    }
    return {**known, **fields}


def test_without_a_plan_there_is_nothing_to_follow(patient: Patient) -> None:
    assert told(patient.findings(), "followed") == [
        ("note", "no plan of the group has been published yet, so there is none to follow")
    ]


def test_plan_that_nobody_has_answered_is_a_problem_once_it_has_had_time(patient: Patient) -> None:
    patient.decide("unchanged", "plan epoch 7 is still current", plan=plan())
    after = told(patient.findings(), "followed")
    patient.decide("unchanged", "plan epoch 7 is still current", plan=plan(sent_at_ms=BATCH_MS - 60_000))

    assert after == [
        (
            "problem",
            "all 2 member(s) have not answered the plan, published 5 min before the newest batch: member b-1, member b-2",
        )
    ]
    assert told(patient.findings(), "followed") == []


def test_member_that_is_silent_beside_one_that_follows_is_named(patient: Patient) -> None:
    patient.decide("unchanged", "plan epoch 7 is under way", plan=plan(done=1))
    patient.write(
        "acks",
        ack("b-1", "accepted"),
        ack("b-2", "accepted", epoch=6),
        ack("b-2", "release", id="invoices-1"),
    )

    found = [one for one in patient.findings() if one.question == "followed"]

    assert [one.cause for one in found] == [
        "plan epoch 7 is open; 1 of 2 moves are made",
        "1 of 2 members have accepted it",
        "1 member(s) have not answered the plan, published 5 min before the newest batch: member b-2",
    ]
    assert [one.level for one in found] == ["ok", "ok", "note"]


def test_members_of_another_assignor_need_not_answer(patient: Patient) -> None:
    patient.write("consumer_groups", group(assignor="cooperative-sticky"))
    patient.decide("unchanged", "plan epoch 7 is still current", plan=plan())

    assert told(patient.findings(), "followed") == [
        (
            "note",
            "with assignor cooperative-sticky members take a plan at a rebalance, if at all, without an answer",
        )
    ]


@pytest.mark.parametrize(
    ("why", "todo"),
    [
        ("static", "static members cannot follow"),
        ("migration is possible: a KIP-848 member", "set group.consumer.migration.policy=disabled"),
        ("made for another generation", "nothing now"),
    ],
)
def test_refusal_is_told_in_the_members_words(patient: Patient, why: str, todo: str) -> None:
    patient.decide("unchanged", _TARGET, plan=plan(status="refused", why=f"member b-1 refused it: {why}"))
    patient.write("acks", ack("b-1", "refused", why=why), ack("b-2", "refused", why="old", epoch=6))

    found = [one for one in patient.findings() if one.question == "followed"]

    assert [one.cause for one in found] == [
        f"plan epoch 7 is refused: member b-1 refused it: {why}",
        f"member b-1 refuses the plan: {why}",
    ]
    assert str(found[1].todo).startswith(todo)
    assert {one.level for one in found} == {"problem"}


@pytest.mark.parametrize(
    ("status", "level"),
    [("applied", "ok"), ("expired", "problem"), ("superseded", "note"), ("partly", "note")],
)
def test_outcome_has_its_level(patient: Patient, status: Any, level: str) -> None:
    patient.decide("unchanged", _TARGET, plan=plan(status=status, why="because", done=2))

    (found,) = [one for one in patient.findings() if one.question == "followed"]

    assert found.level == level


def test_state_of_another_version_is_unknown_and_not_taken_for_no_plan(patient: Patient) -> None:
    known = dict.fromkeys(("why", "status_at", "published_at", "predicted_drain_s", "realised_drain_s"))
    patient.write(
        "plan_state",
        {
            "decision": "unchanged",
            "reason": _TARGET,
            "recorded_at": at(-10),
            "state": '{"a_later_field":1}',
            "plan": {"epoch": 7, "status": "open", "moves": 2, "moves_made": 0, **known},
        },
    )

    assert told(patient.findings(), "followed") == [
        ("unknown", "another version of lagwise recorded the outcome of the plan")
    ]


def consumer_group(patient: Patient, **fields: Any) -> None:
    """A KIP-848 group at group epoch 17, with the plan that moves partition 0 to b-2."""
    reached = {"member_epoch": 17, "unresolved_topic_ids": [], "is_classic": False}
    patient.write(
        "consumer_groups",
        group(
            group_type="consumer",
            reconciliation=[
                {**reached, "member_id": "b-1", "target": []},
                {**reached, "member_id": "b-2", "target": [("invoices", [0, 1])]},
            ],
            **fields,
        ),
    )
    moved = plan(target={"b-1": {}, "b-2": {"invoices": "0-1"}})
    patient.decide("unchanged", "plan epoch 7 is still current", plan=moved)


def test_plan_that_the_broker_has_taken_is_told_of_a_group_that_it_assigns(patient: Patient) -> None:
    consumer_group(patient, generation=18, target_epoch=18, state="Reconciling")

    found = [one for one in patient.findings() if one.question == "followed"][-1]

    assert (found.level, found.cause) == ("ok", "the broker has made the plan its target assignment")


def test_plan_that_the_broker_has_not_taken_says_what_to_look_at(patient: Patient) -> None:
    consumer_group(patient, target_epoch=17)

    found = [one for one in patient.findings() if one.question == "followed"][-1]

    assert (found.level, found.cause.partition(":")[0]) == (
        "note",
        "the broker has not made the plan its target assignment",
    )
    assert "group.remote.assignor=lagwise" in (found.todo or "")
