"""Members that read nothing although there is something to read."""

import pytest

from pipeline.planning.state import GroupState, MemberRate, to_json
from tests.support.job.frames import NOW_MS
from tests.support.operate.findings import told
from tests.support.operate.patient import Patient

_DECIDED_MS = NOW_MS - 10_000


def outages(patient: Patient, **still_s: float) -> list[tuple[str, str]]:
    """What is told of members that have stood still for so long at the newest decision; 0 for one that reads."""
    rates = {
        f"member b-{name[1:]}": MemberRate(
            rate=10.0,
            seen_at_ms=_DECIDED_MS,
            still_since_ms=round(_DECIDED_MS - for_s * 1000) if for_s else 0,
        )
        for name, for_s in still_s.items()
    }
    patient.decide("unchanged", "no move", state=to_json(GroupState(rates=rates)))
    return [one for one in told(patient.findings(), "behind") if "has read nothing" in one[1]]


def test_member_that_stands_still_is_named_with_since_when_and_what_plans_do(patient: Patient) -> None:
    assert outages(patient, b1=0, b2=110) == [
        (
            "note",
            (
                "member b-2 has read nothing for 110 s or longer although there is something to read: plans neither "
                "give it partitions nor take any for two minutes"
            ),
        )
    ]


@pytest.mark.parametrize(("for_s", "level"), [(119, "note"), (120, "problem")])
def test_member_that_is_not_waited_for_any_more_is_a_problem(
    patient: Patient, for_s: float, level: str
) -> None:
    ((found, cause),) = outages(patient, b1=for_s)

    assert found == level
    assert ("plans give what it holds to others" in cause) is (level == "problem")


def test_longest_outage_comes_first_and_who_has_left_is_not_named(patient: Patient) -> None:
    causes = [cause for _, cause in outages(patient, b1=60, b2=90, b3=300)]

    assert [cause.split()[1] for cause in causes] == ["b-2", "b-1"]


def test_nobody_is_named_where_all_members_read(patient: Patient) -> None:
    assert outages(patient, b1=0, b2=0) == []
