"""What the newest plan did to a group, and the probation that it is on."""

from dataclasses import replace

from pipeline.planning.state import GroupState, to_json
from tests.support.job.frames import at
from tests.support.operate.findings import told
from tests.support.operate.message_form import faults
from tests.support.operate.patient import Patient

_PLAN = {"epoch": 7, "status": "applied", "moves": 2, "moves_made": 2, "published_at": at(-900)}
_WHY = "member b-2 kept up before and loses ground since: 5, 90, 180, 260 records behind at its commits"
_AT_TARGET = "the group has its target assignment"
_HURT = {"plan_effect": "hurt", "plan_effect_why": _WHY}


def _state(hurts: int) -> str:
    return to_json(replace(GroupState(), hurts=hurts))


def test_plan_that_hurt_is_told_with_its_evidence(patient: Patient) -> None:
    row = {"decision": "unchanged", "reason": _AT_TARGET, "recorded_at": at(-10), "moves": [], "plan": _PLAN}

    patient.write("plan_state", {**row, **_HURT, "state": _state(1)})

    assert told(patient.findings(), "planned") == [("note", f"plan epoch 7 hurt: {_WHY}")]


def test_plan_that_helped_is_fine_and_one_that_nobody_can_judge_is_not_mentioned(patient: Patient) -> None:
    row = {"decision": "unchanged", "reason": _AT_TARGET, "recorded_at": at(-10), "moves": [], "plan": _PLAN}

    patient.write("plan_state", {**row, "plan_effect": "helped", "plan_effect_why": "900 records, 20 since"})
    causes = [one.cause for one in patient.findings() if one.question == "planned" and one.level == "ok"]
    assert "plan epoch 7 helped: 900 records, 20 since" in causes

    patient.write("plan_state", {**row, "plan_effect": "cannot tell", "plan_effect_why": "seldom"})
    assert not [one for one in patient.findings() if "seldom" in one.cause]


def test_group_on_probation_is_told_until_when_and_what_ends_it(patient: Patient) -> None:
    patient.write(
        "plan_state",
        {
            "decision": "unchanged",
            "reason": _AT_TARGET,
            "recorded_at": at(-10),
            "moves": [],
            "probation_until": at(600),
            "state": _state(2),
        },
    )

    (found,) = [one for one in patient.findings() if one.question == "planned" and one.level == "note"]

    assert faults(found.cause) == []
    assert found.cause.startswith("the group gets no plan before ")
    assert "since 2 plans hurt it" in found.cause
    assert "`lagwise resume billing` ends the probation" in str(found.todo)


def test_probation_that_is_over_is_not_told(patient: Patient) -> None:
    patient.decide("unchanged", _AT_TARGET, probation_until=at(600))

    assert told(patient.findings(now_s=599), "planned") != []
    assert [one for one in patient.findings(now_s=601) if "probation" in one.cause] == []
