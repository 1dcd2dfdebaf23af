"""Members of a KIP-848 group that are, or are not, on the way to their target assignment."""

from typing import Any

import pytest

from pipeline.operate.doctor.evidence import read_stream
from pipeline.operate.doctor.trouble import trouble
from tests.support.job.frames import at, member
from tests.support.operate.findings import told
from tests.support.operate.patient import CONFIG, Patient, group, now

_ON_THE_WAY = "1 member(s) are on the way to their target assignment: waits"


def write(
    patient: Patient,
    *,
    since_s: float | None,
    pending: bool = True,
    timeout_ms: int | None = 60_000,
    waits_ms: int = 10**9,
) -> None:
    """Two members: one that has to give up partition 1, and one that waits for it."""
    progress: dict[str, Any] = {
        "member_epoch": 3,
        "target": [],
        "pending_revocation": [],
        "rebalance_timeout_ms": timeout_ms,
        "behind_since": None if since_s is None else at(since_s),
        "unresolved_topic_ids": [],
    }
    holds = progress | {
        "member_id": "m-1",
        "pending_revocation": [("invoices", [1])] if pending else [],
    }
    waits = progress | {"member_id": "m-2", "target": [("invoices", [1])], "rebalance_timeout_ms": waits_ms}
    members = [
        member("m-1", topics=["invoices"], client_id="holds", assigned=[("invoices", [0, 1])]),
        member("m-2", topics=["invoices"], client_id="waits", assigned=[]),
    ]
    patient.write(
        "consumer_groups",
        group(group_type="consumer", state="Reconciling", members=members, reconciliation=[holds, waits]),
    )


def found(patient: Patient) -> list[tuple[str, str]]:
    return [one for one in told(patient.findings(), "behind") if "target assignment" in one[1]]


def test_member_that_keeps_a_partition_beyond_its_rebalance_timeout_is_stuck(patient: Patient) -> None:
    write(patient, since_s=-100)

    why = (
        "the member is stuck: behind its target assignment for 90 s, longer than its rebalance timeout of 60 s; "
        "it does not give up invoices:1"
    )
    assert found(patient) == [("problem", why), ("note", _ON_THE_WAY)]


def test_group_with_a_stuck_member_is_in_trouble_though_nothing_is_unread(patient: Patient) -> None:
    write(patient, since_s=-100)
    stream = read_stream(patient.tables, CONFIG, is_configured=False, now=now())

    assert [(one.level, one.object, one.todo) for one in trouble(stream)] == [
        ("problem", "billing", "`lagwise doctor billing`")
    ]


def test_member_that_waits_for_another_beyond_its_own_timeout_names_it(patient: Patient) -> None:
    write(patient, since_s=-100, pending=False, waits_ms=1000)

    assert "it waits for invoices:1 of holds" in found(patient)[1][1]
    assert "it has not taken it yet" in found(patient)[0][1]


@pytest.mark.parametrize("timeout_ms", [3_600_000, None])
def test_member_within_its_timeout_or_with_an_unknown_one_is_not_stuck(
    patient: Patient, timeout_ms: int | None
) -> None:
    write(patient, since_s=-100, timeout_ms=timeout_ms)

    assert found(patient) == [("note", "2 member(s) are on the way to their target assignment: holds, waits")]


def test_members_that_have_their_target_are_no_finding(patient: Patient) -> None:
    write(patient, since_s=None)

    assert found(patient) == []
