import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from typer import BadParameter

from pipeline.config.model import Config, HistoryConfig, TriggerConfig
from pipeline.operate.cli.times import parse_time
from pipeline.operate.listings.spans import longest_gap
from tests.support.operate.table_world import NOON


def _write_hours(world: Any) -> None:
    """Lag h on partition h mod 2, h hours before noon, over two days."""
    world.write(
        "lag_history",
        *(
            {"lag": hours, "partition": hours % 2, "updated_at": NOON - timedelta(hours=hours)}
            for hours in range(48)
        ),
    )


def _lags(world: Any, *arguments: str) -> list[str]:
    return [line[6] for line in world.lines("history", *arguments)]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-01-31T10:00:00Z", ["2", "1", "0"]),
        ("2026-01-31T12:00+01:00", ["1", "0"]),
        ("2026-01-31", [str(hours) for hours in range(12, -1, -1)]),
    ],
)
def test_span_is_from_then_on_oldest_first(world: Any, since: str, expected: list[str]) -> None:
    _write_hours(world)

    assert _lags(world, "--since", since) == expected


def test_moment_has_the_newest_row_of_each_partition(world: Any) -> None:
    _write_hours(world)

    assert _lags(world, "--at", "2026-01-31T00:30:00Z") == ["12", "13"]


def test_moment_with_an_offset_is_the_same_one_as_in_utc(world: Any) -> None:
    """Its local date may be another than the date that the table is partitioned by."""
    _write_hours(world)

    assert (
        _lags(world, "--at", "2026-01-30T20:30:00-05:00")
        == _lags(world, "--at", "2026-01-31T01:30:00Z")
        == ["12", "11"]
    )


def test_span_from_a_time_with_an_offset_is_the_same_one_as_in_utc(world: Any) -> None:
    _write_hours(world)

    assert _lags(world, "--since", "2026-01-31T08:30:00+09:00") == [str(hours) for hours in range(12, -1, -1)]
    found = world.run("history", "-g", "other", "--since", "2026-01-31T08:30:00+09:00")
    assert "no row between 2026-01-30T23:30:00Z and " in found.stderr


def test_moment_looks_back_one_day(world: Any) -> None:
    _write_hours(world)

    assert _lags(world, "--at", "2026-02-01T11:30:00Z") == ["0"]
    assert world.run("history", "--at", "2026-02-01T12:30:00Z").exit_code == 1


def test_rows_that_ended_long_before_the_moment_are_counted(world: Any) -> None:
    """Groups, commits and topics that were deleted leave no row that says so."""
    world.write(
        "lag_history",
        {"lag": 90, "partition": 0, "updated_at": NOON - timedelta(hours=1)},
        {"lag": 0, "partition": 1, "updated_at": NOON - timedelta(minutes=9)},
    )

    found = world.run("history", "--at", "2026-01-31T12:00:00Z")

    assert "1 of 2 rows are more than 600 s older than that moment" in found.stderr
    assert "older than that moment" not in world.run("history", "--since", "2026-01-31T10:00:00Z").stderr
    assert (
        "older than that moment" not in world.run("history", "-p", "1", "--at", "2026-01-31T12:00:00Z").stderr
    )


@pytest.mark.parametrize(("trigger_s", "holds_s"), [(30, 600), (900, 1_800)])
def test_row_holds_for_twice_the_time_between_two_rows_also_where_batches_are_rare(
    trigger_s: int, holds_s: int
) -> None:
    config = Config(trigger=TriggerConfig(interval_s=trigger_s), history=HistoryConfig(max_gap_s=300))

    assert longest_gap(config) == timedelta(seconds=holds_s)


def test_group_topic_and_partition_are_filters(world: Any) -> None:
    _write_hours(world)
    since = ("--since", "2026-01-31T09:00")

    assert _lags(world, *since, "-p", "1", "-g", "bill*", "-t", "invoices") == ["3", "1"]
    assert _lags(world, *since, "-t", "other") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", datetime(2026, 1, 31, 11, 58, 30, tzinfo=timezone.utc)),
        ("15m", datetime(2026, 1, 31, 11, 45, tzinfo=timezone.utc)),
        ("1h", datetime(2026, 1, 31, 11, tzinfo=timezone.utc)),
        ("7d", datetime(2026, 1, 24, 12, tzinfo=timezone.utc)),
        ("2026-01-01", datetime(2026, 1, 1, tzinfo=timezone.utc)),
        ("2026-01-01T02:00:00+02:00", datetime(2026, 1, 1, tzinfo=timezone.utc)),
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=timezone.utc)),
    ],
)
def test_time_is_ago_or_iso(text: str, expected: datetime) -> None:
    assert parse_time(text, now=NOON) == expected


def test_bare_time_is_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        moment = parse_time("2026-01-01T00:00:00", now=NOON)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert moment == datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text", ["", "1", "1w", "-1h", "yesterday", "99999999999d", "2026-13-01", "0001-01-01T00:00+01:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="is not a time"):
        parse_time(text, now=NOON)


def test_wrong_time_is_exit_status_2(world: Any) -> None:
    assert world.run("history", "--since", "soon").exit_code == 2
