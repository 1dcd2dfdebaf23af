"""A lag that follows from an old log end never looks like a fresh one."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.operate.table_world import NOON

_ROW: dict[str, Any] = {"log_end_offset": 42, "lag": 27, "committed_offset": 15}


def observed(seconds_ago: int, **more: Any) -> dict[str, Any]:
    return _ROW | {"log_observed_at": NOON - timedelta(seconds=seconds_ago)} | more


def ends_and_lags(world: Any, *arguments: str) -> list[list[str]]:
    return [line[4:6] for line in world.lines("lag", *arguments)]


def test_old_log_end_and_its_lag_are_marked_and_explained(world: Any) -> None:
    world.write("partition_lag", observed(91), observed(90, partition=1), observed(600, partition=2))
    for partition, error in ((0, "timed out"), (1, "other"), (2, "timed out")):
        world.write("topic_offsets", {"partition": partition, "error": error})

    assert ends_and_lags(world) == [["~42", "~27"], ["42", "27"], ["~42", "~27"]]
    assert world.run("lag").stderr.splitlines()[-1] == (
        "~ 2 of 3 rows: no broker has reported the log end offset for more than 90 s, for the oldest row since "
        "2026-01-31T11:50:00Z (timed out); the lag may have grown since"
    )


def test_fresh_ends_and_those_of_deleted_topics_are_not_marked(world: Any) -> None:
    world.write("partition_lag", observed(1), observed(600, partition=1, status="DELETED"))
    world.write("partition_lag", {"partition": 2})

    assert ends_and_lags(world) == [["42", "27"], ["42", "27"], ["-", "-"]]
    assert "~" not in world.run("lag").stderr


def test_limit_follows_trigger_and_staleness_of_the_configuration(world: Any, tmp_path: Path) -> None:
    world.write("partition_lag", observed(299), observed(301, partition=1))
    file = tmp_path / "lagwise.toml"
    file.write_text("[trigger]\ninterval_s = 100\n[plan]\nmax_staleness_s = 120\n")

    assert ends_and_lags(world, "--config", str(file)) == [["42", "27"], ["~42", "~27"]]


def test_totals_count_old_ones(world: Any) -> None:
    world.write("partition_lag", observed(1), observed(600, partition=1), observed(700, partition=2))

    assert world.lines("lag", "--total", "group") == [
        ["billing", "3", ">81", "-", "0", "2", ">27", "-", "-", "-"]
    ]


@pytest.mark.parametrize("command", ["lag", "history"])
def test_programs_get_the_times_instead_of_marks(world: Any, command: str) -> None:
    world.write("partition_lag", observed(600))
    world.write("lag_history", observed(600))

    (row,) = json.loads(world.run(command, *_ALL[command], "-o", "json").stdout)

    assert (row["lag"], row["log_observed_at"]) == (27, "2026-01-31T11:50:00.000000Z")
    assert "is_old" not in row


_ALL = {"lag": [], "history": ["--since", "2026-01-31"]}


def test_history_marks_them_too(world: Any) -> None:
    world.write("lag_history", observed(600))

    assert world.lines("history", *_ALL["history"])[0][5:7] == ["~42", "~27"]


def test_age_of_nothing_unread_at_an_old_log_end_is_marked(world: Any) -> None:
    """What has arrived since may be old; where there is lag, the next record and its age are known."""
    read = {"lag": 0, "lag_seconds": 0.0}
    world.write(
        "partition_lag",
        observed(1, **read),
        observed(600, partition=1, **read),
        observed(600, partition=2, lag_seconds=700.0),
    )

    assert [line[-3] for line in world.lines("lag")] == ["0.0", "~0.0", "700.0"]


@pytest.mark.parametrize(
    ("seconds_ago", "age", "retention", "is_bound"), [(1, "0.0", "-", False), (600, ">0.0", "-", True)]
)
def test_totals_of_nothing_unread_at_an_old_log_end_are_bounds(
    world: Any, seconds_ago: int, age: str, retention: str, *, is_bound: bool
) -> None:
    world.write(
        "partition_lag", observed(seconds_ago, lag=0, lag_seconds=0.0, lag_seconds_is_lower_bound=False)
    )

    (line,) = world.lines("lag", "--total", "group")
    (row,) = json.loads(world.run("lag", "--total", "group", "-o", "json").stdout)

    assert (line[7], line[9]) == (age, retention)
    assert (row["lag_seconds_is_lower_bound"], row["unknown_retention"]) == (is_bound, int(is_bound))
