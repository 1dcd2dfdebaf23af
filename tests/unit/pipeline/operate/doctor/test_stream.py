"""What the doctor says of the driver is what `lagwise health` says, at every second."""

import json

import pytest

from pipeline.operate.doctor.evidence import read_stream
from pipeline.operate.doctor.stream import tables_age
from pipeline.operate.health import look
from pipeline.tables.owner.beat_file import FILE_NAME
from tests.support.job.frames import NOW_MS
from tests.support.operate.patient import CONFIG, Patient, now

_LEVELS = {"ok": {"ok"}, "warning": {"problem", "note"}, "critical": {"problem"}}
_RUNNING = {"stage": "running", "interval_s": 5.0, "stuck_after_s": 60.0, "is_settled": True}


def leave(patient: Patient, *, is_stopped: bool = False, **report: object) -> None:
    """The last heartbeat that a driver has given."""
    values = {"owner": "host/1/2", "term": 4, "at_ms": NOW_MS, "is_stopped": is_stopped}
    told = {**_RUNNING, "progress_at_ms": NOW_MS, **report}
    (patient.root / FILE_NAME).write_text(json.dumps({**values, "report": told}), encoding="utf-8")


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("interval_s", [1.0, 5.0, 30.0])
def test_verdict_is_that_of_health_at_every_second_after_a_kill(
    patient: Patient, interval_s: float, is_stopped: object
) -> None:
    leave(patient, is_stopped=bool(is_stopped), interval_s=interval_s)
    seen = set()
    for second in range(200):
        health = look(patient.tables, CONFIG, now_ms=NOW_MS + second * 1000)
        stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now(second))
        (found,) = tables_age(stream)

        seen.add(health.state)
        assert found.level in _LEVELS[health.state], second
        assert (found.level == "problem") == (not health.is_ready), second
        assert ("(term 4) is running" in found.cause) == health.is_live, second
        for reason in health.reasons[:1]:
            assert reason.partition("; ")[0] in found.cause, second

    assert seen >= ({"critical"} if is_stopped else {"ok", "critical"})


def test_clock_that_somebody_has_to_set_is_a_problem_with_what_to_do(patient: Patient) -> None:
    leave(patient)
    patient.write("partition_lag", held="one of the two clocks was wrong; set it", is_clock_behind=True)
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now(0))

    (found,) = tables_age(stream)

    assert (found.level, found.todo) == ("problem", "set it")
    assert "no plan is made: one of the two clocks was wrong" in found.cause


def test_whether_a_driver_lives_whose_clock_is_ahead_is_unknown(patient: Patient) -> None:
    leave(patient)
    file = patient.root / FILE_NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"at_ms": NOW_MS + 900_000}))
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now(0))

    (found,) = tables_age(stream)

    assert (found.level, found.todo) == (
        "unknown",
        "compare the clocks of this machine and of the driver's host",
    )
    assert "is 900 s ahead of this machine's clock" in found.cause


def test_driver_that_waits_for_kafka_is_not_called_dead(patient: Patient) -> None:
    leave(patient, stage="waiting for Kafka", kafka_error="Kafka is unavailable: no broker answers")
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now(2))

    (found,) = tables_age(stream)

    assert found.level == "problem"
    assert "driver host/1/2 (term 4) is running: Kafka is unavailable: no broker answers" in found.cause


def test_sign_of_life_that_cannot_be_read_leaves_the_verdict_open(patient: Patient) -> None:
    (patient.root / FILE_NAME).write_text("{", encoding="utf-8")
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now())

    (found,) = tables_age(stream)

    assert found.level == "unknown"
    assert "_owner.json cannot be read" in found.cause
