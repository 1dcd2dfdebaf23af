"""All groups at once: those in trouble first, the worst at the top."""

from typing import Any

from pipeline.operate.doctor.evidence import read_group, read_groups, read_stream
from pipeline.operate.doctor.trouble import trouble
from tests.support.job.frames import at
from tests.support.operate.findings import told
from tests.support.operate.patient import CONFIG, Patient, group, lag, now


def late(name: str, seconds: float | None, **more: Any) -> dict[str, Any]:
    return lag(0, group_id=name, lag=9_000, lag_seconds=seconds, **more)


def found_of(patient: Patient) -> list[tuple[str, str]]:
    stream = read_stream(patient.tables, CONFIG, is_configured=False, now=now())
    return told(trouble(stream), "groups")


def write(patient: Patient, *rows: dict[str, Any], **stamp: Any) -> None:
    names = {row["group_id"] for row in rows}
    patient.write("partition_lag", *rows, **stamp)
    patient.write("consumer_groups", *(group(group_id=name) for name in names))


def test_group_that_is_well_is_in_no_trouble(patient: Patient) -> None:
    assert found_of(patient) == []
    stream = read_stream(patient.tables, CONFIG, is_configured=False, now=now())
    assert [one.cause for one in trouble(stream)] == ["none of 1 group(s) is in trouble"]


def test_the_longest_wait_comes_first(patient: Patient) -> None:
    write(
        patient, late("short", 400.0), late("long", 9_000.0), late("middle", 700.0), lag(0, group_id="well")
    )

    causes = [cause for _, cause in found_of(patient)]

    assert [cause.partition(":")[0] for cause in causes] == ["long", "middle", "short"]
    assert causes[0].startswith("long: 9,000 records are unread, the oldest for 2 h")


def test_beyond_ten_only_names_are_told(patient: Patient) -> None:
    write(patient, *(late(f"g{number:02}", 400.0 + number) for number in range(14)))

    found = found_of(patient)

    assert len(found) == 11
    assert found[0][1].startswith("g13: ")
    assert found[-1] == ("problem", "4 more group(s) are in trouble: g03, g02, g01 and 1 more")


def test_group_without_a_visible_name_can_be_asked_for(patient: Patient) -> None:
    write(patient, late("", 400.0), late("a b'c", 300.0))
    stream = read_stream(patient.tables, CONFIG, is_configured=False, now=now())

    found = list(trouble(stream))

    assert found[0].cause.startswith('"": 9,000 records')
    assert [one.todo for one in found] == ["`lagwise doctor ''`", "`lagwise doctor 'a b'\"'\"'c'`"]


def test_what_keeps_all_groups_from_plans_is_no_trouble_of_each(patient: Patient) -> None:
    patient.write("partition_lag", lag(0), held="topic x cannot be read")

    assert found_of(patient) == []


def test_group_whose_lag_is_unknown_is_told_after_the_others(patient: Patient) -> None:
    write(patient, late("late", 400.0), lag(0, group_id="dark", lag=None, lag_seconds=None, status="UNKNOWN"))

    assert [level for level, _ in found_of(patient)] == ["problem", "unknown"]
    assert found_of(patient)[1][1] == "1 group(s) cannot be judged: dark"


def test_evidence_of_all_groups_is_that_of_each(patient: Patient) -> None:
    write(patient, late("a", 1.0), late("b", 2.0), lag(1, group_id="b", topic="orders"))
    patient.write("topic_offsets", {"partition": 0}, {"topic": "orders", "partition": 1}, {"topic": "other"})
    patient.write("acks", {"group_id": "b", "kind": "accepted", "id": "1", "epoch": 7, "acked_at": at(-5)})
    patient.write("orders", {"group_id": "a", "paused": True, "pinned": [], "ordered_at": at(-50)})
    stream = read_stream(patient.tables, CONFIG, is_configured=False, now=now())

    for evidence in read_groups(stream):
        alone = read_group(stream, evidence.group_id)
        assert sorted(map(str, evidence.lags)) == sorted(map(str, alone.lags))
        assert sorted(map(str, evidence.topics)) == sorted(map(str, alone.topics))
        assert (evidence.group, evidence.decision, evidence.orders) == (
            alone.group,
            alone.decision,
            alone.orders,
        )
        assert (evidence.acks, evidence.quarantined) == (alone.acks, alone.quarantined)
