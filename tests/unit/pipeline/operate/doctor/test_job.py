"""What is wrong with the job, and how old everything is."""

import json
from typing import Any

import pytest

from pipeline.tables.owner.beat_file import FILE_NAME
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS
from tests.support.job.frames import NOW_MS, at
from tests.support.operate.findings import told
from tests.support.operate.patient import Patient, group, lag


def beat(patient: Patient, *, age_s: float, is_stopped: bool = False) -> None:
    """A heartbeat of the driver, so old."""
    at_ms = NOW_MS - int(age_s * 1000)
    text = f'{{"owner": "host/1/2", "term": 4, "at_ms": {at_ms}, "is_stopped": {str(is_stopped).lower()}}}'
    (patient.root / FILE_NAME).write_text(text, encoding="utf-8")


def first(patient: Patient, **options: Any) -> tuple[str, str, str | None]:
    """The finding that comes before all others."""
    found = patient.findings(**options)[0]
    assert found.question == "tables"
    return found.level, found.cause, found.todo


def test_running_stream_is_fine(patient: Patient) -> None:
    beat(patient, age_s=3)

    assert first(patient) == (
        "ok",
        "the newest batch began 10 s ago; driver host/1/2 (term 4) is running",
        None,
    )


@pytest.mark.parametrize(
    ("sign", "driver", "todo"),
    [
        (
            {"age_s": 3},
            "driver host/1/2 (term 4) is running: the newest batch is 91 s old (limit 90 s)",
            "see the driver's log",
        ),
        (
            {"age_s": 900},
            "driver host/1/2 has sent no heartbeat for 900 s (limit 90 s)",
            "look at its log",
        ),
        (
            {"age_s": 3, "is_stopped": True},
            "driver host/1/2 was stopped 3 s ago",
            "one that has just started owns them in some seconds, or waits for Kafka",
        ),
        (
            None,
            "no driver owns the tables",
            "one that has just started owns them in some seconds, or waits for Kafka",
        ),
    ],
)
@pytest.mark.parametrize("group_id", ["billing", "orders", None])
def test_old_table_is_said_to_be_old_before_anything_else(
    patient: Patient, sign: Any, driver: str, todo: str, group_id: str | None
) -> None:
    patient.write("partition_lag", lag(0), at_ms=NOW_MS - 91_000)
    if sign is not None:
        beat(patient, **sign)

    level, cause, what = first(patient, group_id=group_id)

    assert level == "problem"
    assert cause.startswith(f"OLD: the newest batch began 91 s ago; {driver}")
    assert str(what).startswith(todo)
    assert str(what).endswith("figures below that come from the tables are as old")


@pytest.mark.parametrize(
    ("report", "cause", "todo"),
    [
        ({"stage": "starting"}, "the driver is starting", "wait for its first batch"),
        (
            {"stage": "running", "kafka_error": "Kafka is unavailable: no answer"},
            "Kafka is unavailable: no answer",
            "look at the brokers and at the network",
        ),
    ],
)
def test_driver_that_is_alive_and_late_is_told_what_to_do_about_its_cause(
    patient: Patient, report: dict[str, Any], cause: str, todo: str
) -> None:
    patient.write("partition_lag", lag(0), at_ms=NOW_MS - 91_000)
    beat(patient, age_s=3)
    file = patient.root / FILE_NAME
    known = {"interval_s": 30, "stuck_after_s": 600, "progress_at_ms": NOW_MS - 3000}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"report": known | report}), encoding="utf-8")

    level, said, what = first(patient)

    assert level == "problem"
    assert said.endswith(f"is running: {cause}")
    assert str(what).startswith(todo)


def test_clock_that_differs_makes_ages_unknown(patient: Patient) -> None:
    assert first(patient, now_s=-60)[:2] == (
        "unknown",
        "the newest batch began 50 s from now by this machine's clock, so no age below is right",
    )


def test_tables_without_a_batch_say_so(patient: Patient) -> None:
    patient.write("partition_lag")
    patient.tables.stamps["partition_lag"] = None

    assert first(patient)[:2] == (
        "problem",
        "no batch has been written yet; no driver owns the tables: there is no _owner.json in their folder",
    )
    found = patient.findings(group_id="orders")
    assert [(one.level, one.as_of) for one in found] == [("problem", None), ("unknown", None)]


def test_healthy_job_has_nothing_to_explain(patient: Patient) -> None:
    assert told(patient.findings(group_id=None), "job") == []


def test_partitions_behind_and_held_plans_are_told(patient: Patient) -> None:
    patient.write(
        "partition_lag", lag(0), behind=(1, 3), reason="900 records left", held="topic x cannot be read"
    )

    assert told(patient.findings(group_id=None), "job") == [
        (
            "problem",
            "2 of 4 partitions of the offsets topic are behind, and their groups provisional: 900 records left",
        ),
        ("problem", "no plan is made for any group: topic x cannot be read"),
    ]


def test_job_that_asks_coordinators_has_no_offsets_topic_and_makes_no_plans_by_its_nature(
    patient: Patient,
) -> None:
    patient.write("partition_lag", lag(0), held=NO_PLANS_BY_ANSWERS)

    assert told(patient.findings(group_id=None), "job") == [
        ("note", f"no plan is made for any group: {NO_PLANS_BY_ANSWERS}")
    ]
    assert told(patient.findings(), "planned") == [
        ("note", f"no plan is made for any group: {NO_PLANS_BY_ANSWERS}")
    ]


def test_partitions_without_log_offsets_are_counted_by_cause(patient: Patient) -> None:
    away, gone = {"error": "broker 2 does not answer"}, {"error": "gone", "deleted_at": at(-50)}
    patient.write(
        "topic_offsets", *({"partition": number, **away} for number in range(5)), {"partition": 5, **gone}
    )

    assert told(patient.findings(group_id=None), "job") == [
        (
            "problem",
            (
                "no broker has returned the log offsets of 5 partition(s): invoices-0, invoices-1, invoices-2 and 2 more: "
                "broker 2 does not answer"
            ),
        )
    ]


def test_quarantine_of_the_last_day_is_counted(patient: Patient) -> None:
    recent = {
        "topic": "__consumer_offsets",
        "kind": "offset_commit",
        "reason": "truncated",
        "updated_at": at(-3600),
    }
    old = recent | {"updated_at": at(-90_000)}
    patient.write("quarantine", recent, recent | {"offset": 2, "updated_at": at(-60), "reason": "odd"}, old)

    assert told(patient.findings(group_id=None), "job") == [
        ("problem", "2 record(s) of __consumer_offsets could not be read within a day, the newest: odd")
    ]


def test_causes_that_hold_plans_back_are_counted_over_groups(patient: Patient) -> None:
    reasons = {
        "a": ("unchanged", "held back by settle: generation 1 is 5 s old, less than settle_s = 120 s"),
        "b": ("unchanged", "held back by settle: generation 7 is 9 s old, less than settle_s = 120 s"),
        "c": ("unchanged", "the group has its target assignment"),
        "d": ("abstain", "no members: the group is empty; planning resumes when consumers join"),
        "e": ("publish", None),
        "deleted": ("publish", None),
    }
    patient.write(
        "plan_state",
        *(
            {"group_id": name, "decision": decision, "reason": reason, "recorded_at": at(-10)}
            for name, (decision, reason) in reasons.items()
        ),
    )

    # What is decided about groups that are deleted meanwhile does not count.
    patient.write("consumer_groups", *(group(group_id=name) for name in "abcde"))

    causes = [one.cause for one in patient.findings(group_id=None) if one.source == "plan_state"]

    assert causes == [
        "newest decisions about 5 group(s): abstain 1, publish 1, unchanged 3",
        "2 group(s), a, b: held back by settle",
        "1 group(s), d: no members: the group is empty",
    ]


def test_paused_groups_are_told_with_the_time(patient: Patient) -> None:
    order = {"paused": True, "pinned": [], "ordered_by": "ann", "ordered_at": at(-7200)}
    patient.write("orders", order, order | {"group_id": "orders", "paused": False})

    assert told(patient.findings(group_id=None), "job") == [
        ("note", "1 group(s) are paused, the longest since 2023-11-14T20:13:20Z: billing")
    ]
