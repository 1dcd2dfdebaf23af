"""`lagwise health`: one line, and an exit status that cron, probes and Nagios understand."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline import clock
from pipeline.operate.cli.app import app
from pipeline.tables.owner.beat_file import FILE_NAME
from pipeline.tables.owner.driver_report import DriverReport
from pipeline.tables.owner.heartbeat import Heartbeat
from pipeline.tables.stamp import Stamp
from tests.support.operate.table_world import World

NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOW_MS)


def stream(
    world: World,
    *,
    batch_at_ms: int = NOW_MS,
    reason: str | None = None,
    clock_trouble: str | None = None,
    **report: Any,
) -> None:
    """Tables as a driver leaves them that runs, with this report."""
    stamp = Stamp(
        batch_id=1,
        at_ms=batch_at_ms,
        reason=reason,
        held=clock_trouble,
        is_clock_behind=clock_trouble is not None,
    )
    world.replace("partition_lag", stamp=stamp)
    told = {
        "stage": "running",
        "interval_s": 5,
        "stuck_after_s": 60,
        "progress_at_ms": NOW_MS,
        "is_settled": True,
    }
    said = DriverReport(**{**told, **report})
    Heartbeat(str(world.root), {}, every_s=60, report=lambda: said).begin("host/7/1", 1)


def told(world: World, *arguments: str) -> tuple[int, str]:
    result = world.run("health", *arguments)
    assert result.stdout.count("\n") == 1
    return result.exit_code, result.stdout.strip()


def test_stream_that_works_is_status_0(world: World) -> None:
    stream(world)

    assert told(world) == (0, "ok: the stream runs, and its tables are up to date")


def test_stream_that_waits_for_kafka_is_status_1_and_lives(world: World) -> None:
    stream(world, kafka_error="Kafka is unavailable: no answer")

    assert told(world) == (1, "warning: Kafka is unavailable: no answer")
    assert told(world, "--live")[0] == 0


def test_driver_that_has_waited_for_kafka_since_its_start_is_unseen_so_the_help_names_another_probe(
    world: World,
) -> None:
    """It owns no tables yet, so it writes no heartbeat."""
    world.replace("partition_lag")
    assert told(world, "--live")[0] == 2

    said = " ".join(CliRunner().invoke(app, ["health", "--help"], env={"COLUMNS": "300"}).stdout.split())

    assert "Not for liveness probes." in said
    assert "a liveness probe needs /healthz of the driver's port" in said


def test_clock_that_somebody_has_to_set_is_status_2_and_the_driver_lives(world: World) -> None:
    stream(world, clock_trouble="this host's clock is wrong")

    assert told(world) == (2, "critical: no plan is made: this host's clock is wrong")
    assert told(world, "--live")[0] == 0


def test_groups_that_a_transaction_holds_back_are_status_1(world: World) -> None:
    stream(world, reason="an open transaction holds back the records after it")

    assert told(world) == (
        1,
        "warning: groups are provisional: an open transaction holds back the records after it",
    )


def test_age_of_the_batch_counts_by_the_trigger_that_the_driver_tells(world: World) -> None:
    stream(world, batch_at_ms=NOW_MS - 16_000)

    assert told(world) == (1, "warning: the newest batch is 16 s old (limit 15 s)")


@pytest.mark.parametrize("arguments", [(), ("--live",)])
def test_driver_that_is_silent_for_three_triggers_is_status_2(
    world: World, arguments: tuple[str, ...]
) -> None:
    stream(world)
    file = world.root / FILE_NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"at_ms": NOW_MS - 15_001}))

    status, line = told(world, *arguments)

    assert status == 2
    assert line.startswith("critical: driver host/7/1 has sent no heartbeat for 15 s (limit 15 s)")


@pytest.mark.parametrize("arguments", [(), ("--live",)])
def test_driver_whose_clock_is_ahead_is_status_3(world: World, arguments: tuple[str, ...]) -> None:
    stream(world)
    file = world.root / FILE_NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"at_ms": NOW_MS + 300_000}))

    status, line = told(world, *arguments)

    assert status == 3
    assert line.startswith("unknown: the heartbeat of driver host/7/1 is 300 s ahead of this machine's clock")


def test_driver_that_was_stopped_is_status_2(world: World) -> None:
    stream(world)
    with Heartbeat(str(world.root), {}) as own:
        own.begin("host/8/2", 2)

    assert told(world)[0] == 2


@pytest.mark.parametrize("damage", ["no tables", "torn beat"])
def test_what_cannot_be_told_is_status_3(world: World, damage: str) -> None:
    if damage == "torn beat":
        stream(world)
        (world.root / FILE_NAME).write_text("{")

    status, line = told(world)

    assert status == 3
    assert line.startswith("unknown: ")
