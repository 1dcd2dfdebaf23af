"""`lagwise doctor` as people and programs call it, on tables that the project's own store has written."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pipeline.operate.cli.app import app
from pipeline.tables.owner.heartbeat import Heartbeat
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import arrow
from tests.support.operate.patient import group, lag

LATE = {"lag": 9_000, "lag_seconds": 400.0}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tables of a group that is well, one that is late, and one that has committed nothing that can be judged."""
    folder = tmp_path_factory.mktemp("tables")
    create_tables(str(folder), retention_hours=0, storage_options={})
    at = datetime.now(tz=timezone.utc)
    rows = {
        "consumer_groups": [group(group_id=name) for name in ("well", "late", "dark")],
        "topic_offsets": [{"topic": "invoices", "observed_at": at}],
        "plan_state": [
            {"group_id": name, "decision": "unchanged", "reason": "the group has its target assignment"}
            for name in ("well", "late", "dark")
        ],
        "partition_lag": [
            lag(0, group_id="well"),
            lag(0, group_id="late", **LATE),
            lag(0, group_id="dark", lag=None, lag_seconds=None, status="UNKNOWN"),
        ],
    }
    store = Store(str(folder), term=1)
    for name, some in rows.items():
        full = [{"topic": "invoices", "updated_at": at, "recorded_at": at, **row} for row in some]
        store.write(name, arrow(name, *full), Stamp(batch_id=7, at_ms=round(at.timestamp() * 1000)))
    with Heartbeat(str(folder), {}, every_s=1) as driver:
        driver.begin("host/1/2", 1)
        yield folder


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ("doctor", *arguments, "--tables", str(root)), catch_exceptions=False)


@pytest.mark.parametrize(
    ("group_id", "status", "summary"),
    [
        ("well", 0, "0 problem(s), 0 unknown\n"),
        ("late", 1, "2 problem(s), 0 unknown\n"),
        ("dark", 3, "0 problem(s), 1 unknown\n"),
        ("none", 1, "1 problem(s), 1 unknown\n"),
    ],
)
def test_exit_status_tells_fine_from_wrong_from_unknown(
    root: Path, group_id: str, status: int, summary: str
) -> None:
    result = run(root, group_id)

    assert (result.exit_code, result.stderr) == (status, summary)


def test_one_screen_with_cause_age_and_what_to_do(root: Path) -> None:
    lines = run(root, "late").stdout.splitlines()

    assert len(lines) <= 24
    assert lines[0].startswith("ok       tables   the newest batch began ")
    assert lines[0].endswith(" s ago]")
    assert lines[1].startswith("note     kafka    no configuration is given, so Kafka was not asked")
    assert any(
        line.startswith("problem  behind   9,000 records are unread, the oldest for 7 min") for line in lines
    )
    assert all("[" in line or line.startswith(" " * 18 + "do: ") for line in lines)


def test_programs_get_every_field(root: Path) -> None:
    found: list[dict[str, Any]] = json.loads(run(root, "late", "-o", "json").stdout)

    by_question = {one["question"]: one for one in found}
    assert {one["group_id"] for one in found} == {"late"}
    assert set(by_question) == {"tables", "kafka", "listed", "planned", "followed", "behind"}
    assert set(found[0]) == {
        "group_id",
        "question",
        "level",
        "cause",
        "object",
        "todo",
        "source",
        "as_of",
        "age_s",
    }
    assert 0 <= by_question["listed"]["age_s"] < 60
    assert by_question["kafka"]["age_s"] is None


def test_without_a_group_it_begins_with_those_in_trouble_and_ends_with_the_job(root: Path) -> None:
    result = run(root)

    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0].startswith("problem  groups   late: 9,000 records are unread, the oldest for 7 min")
    assert lines[0].partition("  [")[0].endswith(" (and 1 more)")
    assert lines[1].endswith("do: `lagwise doctor late`")
    assert lines[2].startswith("unknown  groups   1 group(s) cannot be judged: dark")
    assert lines[4].startswith("ok       tables   ")
    assert "newest decisions about 3 group(s): unchanged 3" in result.stdout


def test_kafka_that_cannot_be_reached_is_told_and_the_tables_answer(root: Path, tmp_path: Path) -> None:
    config = tmp_path / "lagwise.toml"
    # Nothing listens on port 1.
    config.write_text(
        '[kafka.properties]\n"bootstrap.servers" = "127.0.0.1:1"\n[source]\nrequest_timeout_s = 1\n', "utf-8"
    )

    result = run(root, "well", "--config", str(config))

    kafka = next(line for line in result.stdout.splitlines() if " kafka " in line)
    assert kafka.startswith(
        "unknown  kafka    Kafka cannot be asked; what follows is from the tables alone: "
    )
    assert "the group is listed with 1 partition(s)" in result.stdout
    assert result.exit_code == 3


def test_missing_tables_are_one_line(tmp_path: Path) -> None:
    result = run(tmp_path, "well")

    assert result.exit_code == 1
    assert result.stderr.startswith("lagwise: no table partition_lag under ")


def test_name_cannot_steer_the_terminal(root: Path) -> None:
    result = run(root, "ev\x1b[2Jil")

    assert "\x1b" not in result.stdout


_PROBE = """
import atexit, sys
from pipeline.operate.cli.app import main
atexit.register(lambda: print("pyspark" in sys.modules))
main()
"""


def test_it_loads_no_spark(root: Path) -> None:
    command = [sys.executable, "-c", _PROBE, "doctor", "well", "--tables", str(root)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("table", ["consumer_groups", "partition_lag"])
@pytest.mark.parametrize(
    "left", [None, 0, 4, "zeros"], ids=["gone", "empty", "cut short", "zeros at its size"]
)
def test_tables_whose_files_are_gone_or_damaged_are_named(
    root: Path, tmp_path: Path, left: int | str | None, table: str
) -> None:
    broken = tmp_path / "tables"
    shutil.copytree(root, broken)
    (gone,) = (broken / table).glob("**/*-*.parquet")
    if left is None:
        gone.unlink()
    else:
        gone.write_bytes(bytes(gone.stat().st_size) if left == "zeros" else gone.read_bytes()[: int(left)])

    for arguments in ((), ("late",)):
        result = run(broken, *arguments)
        line = next(one for one in result.stdout.splitlines() if "are gone or damaged" in one)
        assert line.startswith(f"problem  tables   1 file(s) of table {table} are gone or damaged")
        assert gone.name in line
        assert result.exit_code == 1


def test_table_whose_log_is_damaged_is_named_beside_another_whose_file_is(root: Path, tmp_path: Path) -> None:
    broken = tmp_path / "tables"
    shutil.copytree(root, broken)
    newest = max((broken / "consumer_groups" / "_delta_log").glob("*.json"))
    newest.write_bytes(bytes(newest.stat().st_size))
    (gone,) = (broken / "topic_offsets").glob("**/*-*.parquet")
    gone.unlink()

    result = run(broken)

    assert "problem  tables   the log of table consumer_groups is damaged" in result.stdout
    assert "1 file(s) of table topic_offsets are gone" in result.stdout
    assert result.exit_code == 1


def test_there_is_no_escape_code_in_what_is_no_terminal(root: Path, tmp_path: Path) -> None:
    closed = tmp_path / "tables"
    shutil.copytree(root, closed)
    log = closed / "partition_lag" / "_delta_log"
    first = min(log.glob("*.json"))
    first.unlink()
    first.symlink_to(first)
    results = [
        CliRunner().invoke(app, (*command, "--tables", str(closed)))
        for command in (("health",), ("doctor",), ("lag",), ("groups",))
    ]

    for result in results:
        assert result.exit_code
        assert "\x1b" not in result.output
        assert "x1b" not in result.output
