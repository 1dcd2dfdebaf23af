"""Whether a group is behind, and why."""

from typing import Any

import pytest

from pipeline.operate.doctor.finding import Finding
from tests.support.job.frames import at, member
from tests.support.operate.findings import told
from tests.support.operate.patient import Patient, group, lag

LATE = {"lag": 9_000, "lag_seconds": 400.0}
QUIET = {"member_id": "b-2", "lag": 0, "lag_seconds": 0.0}


def behind(patient: Patient, *rows: dict[str, Any]) -> list[tuple[str, str]]:
    """What is told of these rows of `partition_lag`."""
    patient.write("partition_lag", *rows)
    return told(patient.findings(), "behind")


def test_group_that_keeps_up_has_nothing_to_explain(patient: Patient) -> None:
    assert behind(patient, lag(0), lag(1, **QUIET)) == []


def test_late_group_is_told_with_its_worst_partition_and_owner(patient: Patient) -> None:
    first, *_ = behind(patient, lag(0, **LATE), lag(1, **LATE | {"lag_seconds": 500.0, "member_id": "b-2"}))

    assert first == (
        "problem",
        "18,000 records are unread, the oldest for 8 min (invoices-1, owner member b-2 at /10.0.0.7)",
    )


def test_lower_bound_is_called_one(patient: Patient) -> None:
    (_, cause), *_ = behind(patient, lag(0, **LATE, lag_seconds_is_lower_bound=True))

    assert "the oldest for at least 7 min" in cause


@pytest.mark.parametrize("young", [{"lag_seconds_is_lower_bound": True}, {"lag_seconds": None}])
def test_group_is_not_said_to_be_on_time_by_a_lower_bound(patient: Patient, young: dict[str, Any]) -> None:
    """When a stream has just begun, hours of lag are older than all that it has seen."""
    first, *_ = behind(patient, lag(0, lag=9_000, lag_seconds=4.0), lag(1, **{"lag_seconds": 2.0, **young}))

    assert first == (
        "unknown",
        "9,005 records are unread, the oldest for at least 4 s, so whether it is late (min_lag_s = 60) is still unknown",
    )


def test_age_that_is_unknown_may_be_the_oldest(patient: Patient) -> None:
    (_, cause), *_ = behind(patient, lag(0, **LATE), lag(1, lag_seconds=None, member_id="b-2"))

    assert "the oldest for at least 7 min" in cause


@pytest.mark.parametrize(
    ("row", "level", "cause"),
    [
        (
            lag(0, lag=None, lag_seconds=None, status="UNKNOWN"),
            "unknown",
            "the lag of all 1 partition(s) is unknown",
        ),
        (
            lag(0, lag_seconds=None),
            "unknown",
            "5 records are unread, and how long the oldest has waited is unknown",
        ),
        (lag(0, lag=0, lag_seconds=None), "ok", "nothing is unread"),
    ],
)
def test_unknown_is_never_taken_for_no_lag(
    patient: Patient, row: dict[str, Any], level: str, cause: str
) -> None:
    patient.write("partition_lag", row)

    first = next(one for one in patient.findings() if one.question == "behind")

    assert (first.level, first.cause) == (level, cause)


def test_group_is_not_said_to_be_on_time_by_an_old_log_end(patient: Patient) -> None:
    """What has arrived since may be late."""
    old = lag(1, **QUIET, log_observed_at=at(-600))

    (only_old, *_), (with_lag, *_) = behind(patient, old), behind(patient, lag(0, lag_seconds=4.0), old)

    assert only_old == (
        "unknown",
        "nothing was unread at the last known log ends; what has arrived since is unknown",
    )
    assert with_lag[0] == "unknown"
    assert "the oldest for at least 4 s, so whether it is late" in with_lag[1]


def test_partitions_without_a_known_lag_are_counted_beside_the_others(patient: Patient) -> None:
    never = lag(1, lag=None, lag_seconds=None, status="NOT_COMMITTED")
    unknown = lag(2, lag=None, lag_seconds=None, status="UNKNOWN")
    deleted = lag(3, lag=None, status="DELETED")

    assert behind(patient, lag(0), never, unknown, deleted) == [
        ("note", "the group has no commit, and so unknown lag, in 1 of 3 partitions: invoices-1"),
        ("unknown", "1 of 3 partitions have unknown lag in spite of a commit: invoices-2"),
    ]


def test_old_log_end_is_told_with_its_age(patient: Patient) -> None:
    patient.write("partition_lag", lag(0, log_observed_at=at(-10 - 91)), lag(1, log_observed_at=at(-10 - 89)))

    (found,) = [one for one in patient.findings() if one.question == "behind" and one.level == "unknown"]

    assert found.cause == "the lag of 1 of 2 partitions rests on old log ends and may have grown: invoices-0"
    assert found.as_of == at(-101)


@pytest.mark.parametrize(
    ("trends", "level", "cause"),
    [
        (
            ("growing", "falling", None),
            "problem",
            "lag has grown in 1 of 3 partitions (1 unknown): invoices-0",
        ),
        (
            ("falling", "falling", "steady"),
            "note",
            "lag has fallen in 2 of 3 partitions: invoices-0, invoices-1",
        ),
    ],
)
def test_trend_says_more_than_rates(
    patient: Patient, trends: tuple[str | None, ...], level: str, cause: str
) -> None:
    rates = {"arrival_rate": 9.0, "drain_rate": 1.0}
    rows = [lag(number, **LATE, **rates, trend=trend) for number, trend in enumerate(trends)]

    found = behind(patient, *rows)

    assert (level, cause) in found
    assert ("note", "27 records/s arrive and 3 are drained") in found


def test_without_a_trend_rates_say_whether_lag_grows(patient: Patient) -> None:
    found = behind(patient, lag(0, **LATE, arrival_rate=9.0, drain_rate=1.0))

    assert ("problem", "9 records/s arrive and 1 are drained: lag grows") in found
    assert not [cause for _, cause in found if cause.startswith("lag has ")]


@pytest.mark.parametrize(
    ("status", "level"),
    [("EXPIRED", "problem"), ("STOP", "problem"), ("STALL", "problem"), ("REWIND", "note")],
)
def test_status_is_told_with_its_partitions(patient: Patient, status: str, level: str) -> None:
    ((found, cause),) = behind(patient, lag(0, status=status), lag(1, **QUIET), lag(2, status="WARN"))

    assert found == level
    assert cause.startswith(f"{status}: ")
    assert cause.endswith("in 1 partition(s): invoices-0; owner member b-1 at /10.0.0.7")


def test_empty_group_has_nobody_who_reads(patient: Patient) -> None:
    patient.write("consumer_groups", group(members=[], state="Empty"))

    found = behind(patient, lag(0, assigned=False, member_id=None))

    assert found == [("problem", "nobody reads: the group has no members")]


def test_partition_without_an_owner_is_named(patient: Patient) -> None:
    assert behind(patient, lag(0, assigned=False, member_id=None), lag(1, **QUIET)) == [
        ("problem", "1 partition(s) with unread records have no owner: invoices-0")
    ]


def test_owners_that_cannot_be_seen_are_not_called_missing(patient: Patient) -> None:
    # As an earlier version has left a KIP-848 group.
    patient.write("consumer_groups", group(group_type="consumer", members=[], state=None))

    assert behind(patient, lag(0, assigned=False, member_id=None)) == []


def test_no_partition_is_called_without_an_owner_while_the_assignment_of_a_member_is_unknown(
    patient: Patient,
) -> None:
    patient.write("consumer_groups", group(members=[member("a-1", assigned=None)]))

    assert behind(patient, lag(0, assigned=False, member_id=None)) == []


def test_kip_848_group_without_members_is_read_by_nobody(patient: Patient) -> None:
    patient.write("consumer_groups", group(group_type="consumer", members=[], state="Empty"))

    assert ("problem", "nobody reads: the group has no members") in behind(
        patient, lag(0, assigned=False, member_id=None)
    )


def test_one_buried_member_is_named(patient: Patient) -> None:
    found = behind(patient, lag(0, **LATE), lag(1, **LATE), lag(2, lag=10, lag_seconds=1.0, member_id="b-2"))

    assert (
        "problem",
        "one of 2 members has 100% of the lag and 2 of 3 partitions: member b-1 at /10.0.0.7",
    ) in found


@pytest.mark.parametrize(
    ("arrival", "drain", "expected"),
    [
        (50.0, 10.0, ("problem", "60 records/s arrive and 20 are drained: lag grows")),
        (10.0, 50.0, ("note", "20 records/s arrive and 60 are drained: lag shrinks")),
        (10.0, 10.0, ("note", "20 records/s arrive and 20 are drained: lag stays about the same")),
        (None, 10.0, ("unknown", "rates of 1 of 2 partitions are unknown")),
    ],
)
def test_rates_tell_where_it_goes(
    patient: Patient, arrival: float | None, drain: float, expected: tuple[str, str]
) -> None:
    assert expected in behind(
        patient, lag(0, **LATE, arrival_rate=arrival, drain_rate=drain), lag(1, **QUIET)
    )


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        ("held back by cooldown: 30 s", "another assignment may help: see planned and followed"),
        (
            "the group has its target assignment; no move: no plan of at most 3 drains it sooner",
            "the planner has no better assignment: make this member faster, or add partitions to its topics",
        ),
    ],
)
def test_another_assignment_is_advised_only_where_the_planner_may_find_one(
    patient: Patient, reason: str, todo: str
) -> None:
    patient.write("partition_lag", lag(0, **LATE), lag(1, **QUIET))
    patient.decide("unchanged", reason)

    (found,) = [one for one in patient.findings() if one.cause.startswith("one of 2 members has 100%")]

    assert found.todo == todo


def test_capacity_is_told_as_the_planner_sees_it(patient: Patient) -> None:
    remark = (
        "the group runs at 192 % of its capacity (receives 200 records/s more than it drains): add members"
    )
    assumed = "member b-2 has not shown its limit: lagwise assumes at most 100 records/s"
    patient.decide(
        "unchanged",
        f"the group has its target assignment; {remark}; no move: no member needs more than 10 s; {assumed}",
        drain_s_before=300.0,
        drain_s_after=120.0,
        moves=[{"topic": "invoices", "partition": 0, "from": "b-1", "to": "b-2", "lag": 5}],
        updated_at=at(-40),
    )

    found = [one for one in patient.findings() if one.source == "plan_state" and one.question == "behind"]

    assert [(one.level, one.cause, one.as_of) for one in found] == [
        ("problem", f"the planner says: {remark}", at(-40)),
        ("note", f"the planner says: {assumed}", at(-40)),
        ("note", "predicted time to drain: 5 min as assigned, 2 min under the plan", at(-40)),
    ]


def test_plan_that_drains_a_group_which_never_would_is_told(patient: Patient) -> None:
    move = {"topic": "invoices", "partition": 0, "from": "b-1", "to": "b-2", "lag": 5}
    patient.decide("dry_run", None, drain_s_after=120.0, capacity_known=True, moves=[move])

    found = [one.cause for one in patient.findings() if one.cause.startswith("predicted time")]

    assert found == ["predicted time to drain: never as assigned, 2 min under the plan"]


def test_every_finding_says_how_old_its_figures_are(patient: Patient) -> None:
    patient.write("partition_lag", lag(0, **LATE, status="STALL"), lag(1, lag=None, status="NOT_COMMITTED"))

    found: list[Finding] = patient.findings()

    assert {one.as_of for one in found} == {at(-10)}


def test_member_is_called_by_its_client_id_where_no_other_has_it(patient: Patient) -> None:
    members = [member(name, topics=["invoices"], client_id=f"client-of-{name}") for name in ("b-1", "b-2")]
    patient.write("consumer_groups", group(members=members))

    (_, cause), *_ = behind(patient, lag(0, **LATE), lag(1, **QUIET))

    assert cause.endswith("(invoices-0, owner client client-of-b-1 at /10.0.0.7)")
