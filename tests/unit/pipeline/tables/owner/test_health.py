"""The verdict on a stream: by the age of what its driver has written, and by what it tells of itself."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.tables.owner.driver_report import DriverReport
from pipeline.tables.owner.health import Health, Sight, judge
from pipeline.tables.owner.heartbeat import Beat

NOW_MS = 1_700_000_000_000
REPORT = DriverReport(
    stage="running",
    interval_s=30,
    stuck_after_s=300,
    progress_at_ms=NOW_MS,
    step="store_lag",
    is_settled=True,
)
BEAT = Beat(owner="host/7/1", term=3, at_ms=NOW_MS, report=REPORT)
WELL = Sight(has_beats=True, beat=BEAT, batch_at_ms=NOW_MS, interval_s=30)


def ago(seconds: float) -> int:
    return NOW_MS - round(seconds * 1000)


def seen(**changes: Any) -> Health:
    """With changes of the sight, of the beat, or of the report, whichever has a field of that name."""
    report = {name: changes.pop(name) for name in list(changes) if name in DriverReport.__slots__}
    beat = {name: changes.pop(name) for name in list(changes) if name in Beat.__slots__}
    told = replace(BEAT, report=replace(REPORT, **report), **beat)
    return judge(replace(WELL, **{"beat": told, **changes}), now_ms=NOW_MS)


def test_stream_that_works_is_ok() -> None:
    assert seen() == Health(is_live=True, is_ready=True, reasons=())
    assert seen().state == "ok"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"at_ms": ago(90.1)}, "host/7/1 has sent no heartbeat for 90 s (limit 90 s)"),
        ({"at_ms": ago(15.1), "interval_s": 1}, "no heartbeat for 15 s (limit 15 s)"),
        ({"is_stopped": True, "at_ms": ago(4)}, "host/7/1 was stopped 4 s ago"),
        ({"progress_at_ms": ago(301)}, "stuck after store_lag: no step has ended for 301 s (limit 300 s)"),
        (
            {"progress_at_ms": ago(301), "doing": "maintain_tables (compact lag_history)"},
            "stuck in maintain_tables (compact lag_history): no step has ended for 301 s",
        ),
        ({"progress_at_ms": ago(301), "step": None, "stage": "starting"}, "stuck while it is starting"),
    ],
)
def test_driver_without_signs_of_life_or_progress_is_dead(changes: dict[str, Any], words: str) -> None:
    health = seen(**changes)

    assert (health.is_live, health.is_ready, health.state) == (False, False, "critical")
    assert words in health.reasons[0]


@pytest.mark.parametrize(
    "changes", [{}, {"progress_at_ms": ago(-400)}, {"batch_at_ms": ago(-400), "stage": "starting"}]
)
def test_whether_a_driver_lives_is_unknown_while_its_clock_is_ahead(changes: dict[str, Any]) -> None:
    health = seen(at_ms=ago(-400), **changes)

    assert (health.is_live, health.is_ready, health.state) == (None, False, "unknown")
    (reason,) = health.reasons
    assert reason == (
        "the heartbeat of driver host/7/1 is 400 s ahead of this machine's clock, so whether the driver lives is "
        "unknown; compare the clocks of this machine and of the driver's host"
    )
    assert '"live": null' in health.to_json()


def test_full_disk_is_critical_whatever_the_clocks() -> None:
    assert seen(at_ms=ago(-400), full="the disk is full").state == "critical"


def test_driver_that_was_stopped_by_a_clock_that_is_ahead_is_stopped() -> None:
    health = seen(at_ms=ago(-400), is_stopped=True)

    assert health.state == "critical"
    assert "was stopped 0 s ago" in health.reasons[0]


def test_nobody_at_the_tables_is_critical() -> None:
    health = judge(replace(WELL, beat=None), now_ms=NOW_MS)

    assert health.state == "critical"
    assert "no driver owns the tables" in health.reasons[0]
    assert health.reasons[0].endswith(
        "; one that has just started owns them in some seconds, or waits for Kafka: see its log; otherwise start one "
        "with `lagwise run`"
    )


def test_clock_that_somebody_has_to_set_is_critical_and_restarts_nothing() -> None:
    health = seen(held="epoch 9 of group g is of a year later", is_clock_behind=True)

    assert (health.is_live, health.is_ready, health.state) == (True, True, "critical")
    assert health.reasons == ("no plan is made: epoch 9 of group g is of a year later",)


@pytest.mark.parametrize("changes", [{"at_ms": ago(89)}, {"at_ms": ago(-89)}, {"progress_at_ms": ago(299)}])
def test_late_sign_of_life_is_one(changes: dict[str, Any]) -> None:
    assert seen(**changes).state == "ok"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kafka_error": "Kafka is unavailable: no answer"}, "Kafka is unavailable: no answer"),
        ({"batch_at_ms": ago(91)}, "the newest batch is 91 s old (limit 90 s)"),
        (
            {"batch_at_ms": ago(-91)},
            "the newest batch is 91 s ahead of this machine's clock, so its age is unknown",
        ),
        ({"batch_at_ms": None}, "no batch has been written yet"),
        ({"is_settled": False}, "the offsets topic is being read for the first time"),
        ({"stage": "starting", "batch_at_ms": ago(999)}, "the driver is starting"),
        ({"stage": "standing by"}, "the driver is standing by"),
    ],
)
def test_living_driver_whose_tables_are_not_up_to_date_is_not_ready(
    changes: dict[str, Any], words: str
) -> None:
    health = seen(**changes)

    assert (health.is_live, health.is_ready, health.state) == (True, False, "warning")
    assert health.reasons[0].startswith(words)


@pytest.mark.parametrize("name", ["reason", "held"])
def test_what_holds_groups_back_is_named_by_a_ready_driver(name: str) -> None:
    health = judge(
        replace(WELL, **{name: "an open transaction holds back the records after it"}), now_ms=NOW_MS
    )

    assert (health.is_ready, health.state) == (True, "warning")
    assert health.reasons[0].endswith("an open transaction holds back the records after it")


@pytest.mark.parametrize(
    ("batch_at_ms", "state"),
    [
        (ago(89), "ok"),
        (ago(91), "warning"),
        (ago(301), "critical"),
        (ago(-91), "warning"),
        (ago(-301), "unknown"),
        (None, "critical"),
    ],
)
def test_without_signs_of_life_the_newest_batch_decides(batch_at_ms: int | None, state: str) -> None:
    health = judge(replace(WELL, has_beats=False, beat=None, batch_at_ms=batch_at_ms), now_ms=NOW_MS)

    assert health.state == state


def test_driver_of_an_earlier_version_is_judged_by_its_beat_and_batch() -> None:
    earlier = replace(WELL, beat=replace(BEAT, report=None))

    assert judge(earlier, now_ms=NOW_MS).state == "ok"
    assert judge(replace(earlier, batch_at_ms=ago(91)), now_ms=NOW_MS).state == "warning"


@pytest.mark.parametrize("changes", [{"storage_error": "the disk is full"}, {"full": "the disk is full"}])
def test_driver_whose_tables_cannot_be_written_lives_and_is_critical(changes: dict[str, Any]) -> None:
    health = seen(**changes)

    assert (health.is_live, health.is_ready, health.state) == (True, False, "critical")
    assert health.reasons[0] == "the disk is full"


def test_full_disk_comes_before_the_silence_that_follows_from_it() -> None:
    health = seen(full="the disk is full", at_ms=ago(500))

    assert health.state == "critical"
    assert health.reasons[0] == "the disk is full"
    assert "no heartbeat" in health.reasons[1]


def test_remarks_of_the_newest_batch_are_told() -> None:
    health = seen(remarks=("3 commits may be out of date",))

    assert (health.state, health.reasons) == ("warning", ("3 commits may be out of date",))
