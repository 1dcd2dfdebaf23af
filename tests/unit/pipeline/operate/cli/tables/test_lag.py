import csv
import io
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pipeline.clock import now_ms
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.support.operate.table_world import NOON

_ROW: dict[str, Any] = {
    "committed_offset": 30,
    "log_end_offset": 42,
    "lag": 12,
    "raw_lag": 12,
    "lag_at_commit": 3,
    "lag_seconds": 7.25,
    "lag_seconds_is_lower_bound": False,
    "member_id": "m-1",
    "client_host": "/10.0.0.7",
    "client_id": "worker",
    "assigned": True,
    "trend": "growing",
    "retention_seconds": 3600.0,
}


def test_columns_are_those_of_kafka_consumer_groups_and_a_few_more(world: Any) -> None:
    world.write("partition_lag", _ROW)

    result = world.run("lag")

    assert result.stdout == (
        "GROUP    TOPIC     PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  AT-COMMIT  CONSUMER-ID  HOST       CLIENT-ID  STATUS  LAG-SECONDS  TREND    RETENTION-S\n"
        "billing  invoices          0              30              42   12          3  m-1          /10.0.0.7  worker     OK              7.2  growing       3600.0\n"
    )
    assert (result.exit_code, result.stderr) == (0, "")


def test_unknown_is_a_hyphen_and_never_zero(world: Any) -> None:
    world.write("partition_lag", {"status": "NOT_COMMITTED", "log_end_offset": 42})

    assert world.lines("lag") == [
        ["billing", "invoices", "0", "-", "42", *["-"] * 5, "NOT_COMMITTED", "-", "-", "-"]
    ]


def test_lower_bound_and_provisional_are_marked(world: Any) -> None:
    world.write(
        "partition_lag",
        _ROW | {"lag_seconds_is_lower_bound": True, "provisional": True},
        _ROW | {"partition": 1},
    )

    result = world.run("lag")

    first, second = (line.split()[-4:-2] for line in result.stdout.splitlines()[1:])
    assert first == ["OK*", ">7.2"]
    assert second == ["OK", "7.2"]
    assert "1 of 2 rows are provisional" in result.stderr


_UNCONFIRMED = (
    "the beginning of its part of the offsets topic was deleted unread, and the brokers have not confirmed it"
)


def test_rows_that_nobody_has_confirmed_are_marked_and_told_with_the_reason_and_not_as_provisional(
    world: Any,
) -> None:
    unconfirmed = {"provisional": True, "unconfirmed_reason": _UNCONFIRMED}
    world.write(
        "partition_lag",
        _ROW | unconfirmed,
        _ROW | {"partition": 1, **unconfirmed},
        _ROW | {"partition": 2, "provisional": True},
        _ROW | {"partition": 3},
    )

    result = world.run("lag")

    assert [line.split()[-4] for line in result.stdout.splitlines()[1:]] == ["OK*", "OK*", "OK*", "OK"]
    assert f"* 2 of 4 rows may be out of date: {_UNCONFIRMED}\n" in result.stderr
    assert "* 1 of 4 rows are provisional: " in result.stderr
    wide = world.run("lag", "--wide").stdout.splitlines()
    assert [_UNCONFIRMED in line for line in wide] == [False, True, True, False, False]


def test_only_rows_that_nobody_has_confirmed_are_not_called_provisional_as_well(world: Any) -> None:
    world.write(
        "partition_lag",
        _ROW | {"provisional": True, "unconfirmed_reason": _UNCONFIRMED},
        _ROW | {"partition": 1},
    )

    told = world.run("lag").stderr

    assert "* 1 of 2 rows may be out of date: " in told
    assert "provisional" not in told
    assert "out of date" not in world.run("lag", "-t", "none").stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-g", "billing"], ["billing"]),
        (["-g", "b*"], ["billing", "billing_eu"]),
        (["-g", "b*_eu"], ["billing_eu"]),
        (["-g", "?rders"], ["orders", "urders"]),
        (["-g", "orders", "-g", "billing"], ["billing", "orders"]),
        (["-g", "*_*"], ["billing_eu"]),
        (["-g", "*%*"], []),
        (["-t", "other"], ["urders"]),
        (["-g", "o*", "-t", "inv*"], ["orders"]),
        (["-g", "ORDERS"], []),
    ],
)
def test_globs_choose_rows(world: Any, arguments: list[str], expected: list[str]) -> None:
    groups = ("orders", "billing", "billing_eu")
    world.write("partition_lag", *({"group_id": group} for group in groups))
    world.write("partition_lag", {"group_id": "urders", "topic": "other"})

    assert [line[0] for line in world.lines("lag", *arguments)] == expected


def grows(retention_s: float) -> dict[str, Any]:
    return {"trend": "growing", "retention_seconds": retention_s}


def _write_three(world: Any) -> None:
    world.write(
        "partition_lag",
        {"group_id": "a", "topic": "z", "lag": 5, "lag_seconds": 1.0},
        {"group_id": "b", "topic": "y", "lag": None, "lag_seconds": 9.0},
        {"group_id": "c", "topic": "x", "lag": 7, "lag_seconds": None},
        {"group_id": "d", "topic": "x", "lag": 5, "lag_seconds": 2.0},
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "abcd"),
        (["--sort", "group"], "abcd"),
        (["--sort", "topic"], "cdba"),
        (["--sort", "lag"], "cadb"),
        (["--sort", "lag_seconds"], "bdac"),
        (["--top", "2"], "ca"),
        (["--top", "2", "--sort", "group"], "ab"),
    ],
    ids=" ".join,
)
def test_order_is_by_key_then_group_with_unknown_last(
    world: Any, arguments: list[str], expected: str
) -> None:
    _write_three(world)

    assert "".join(line[0] for line in world.lines("lag", *arguments)) == expected


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (
            "group",
            [
                ["billing", "3", ">15", ">4", "1", "0", ">10", ">3.0", ">2", "<5.0"],
                ["orders", "1", "-", "-", "1", "0", "-", "-", "-", "-"],
            ],
        ),
        (
            "topic",
            [
                ["billing", "credits", "1", "10", "-", "0", "0", "10", "1.0", "1", "5.0"],
                ["billing", "invoices", "2", ">5", ">4", "1", "0", ">5", ">3.0", ">1", "<9.0"],
                ["orders", "invoices", "1", "-", "-", "1", "0", "-", "-", "-", "-"],
            ],
        ),
        (
            "member",
            [
                ["billing", "m1", "-", "-", "2", "15", ">4", "0", "0", "10", "3.0", "2", "5.0"],
                ["billing", "-", "-", "-", "1", "-", "-", "1", "0", "-", "-", "-", "-"],
                ["orders", "-", "-", "-", "1", "-", "-", "1", "0", "-", "-", "-", "-"],
            ],
        ),
    ],
)
def test_totals_add_known_lag_and_count_unknown(world: Any, by: str, expected: list[list[str]]) -> None:
    world.write(
        "partition_lag",
        {"lag": 5, "lag_at_commit": 4, "lag_seconds": 3.0, "member_id": "m1", **grows(9.0)},
        {"partition": 1, "lag": None},
        {"topic": "credits", "lag": 10, "lag_seconds": 1.0, "member_id": "m1", **grows(5.0)},
        {"group_id": "orders", "lag": None},
    )

    assert world.lines("lag", "--total", by) == expected


def test_totals_are_marked_where_the_true_figure_may_be_another(world: Any) -> None:
    known: dict[str, Any] = {
        "lag": 5,
        "lag_at_commit": 2,
        "lag_seconds": 3.0,
        "trend": "growing",
        "retention_seconds": 60.0,
    }
    others: list[dict[str, Any]] = [
        {
            "lag": 0,
            "lag_at_commit": 0,
            "lag_seconds": 0.0,
            "trend": "steady",
            "retention_seconds": None,
        },
        {"log_observed_at": NOON - timedelta(hours=1)},
        {"lag_seconds_is_lower_bound": True},
        {"lag_seconds": None},
        {"trend": None},
        {"retention_seconds": None},
        {"lag_at_commit": None},
    ]
    world.write(
        "partition_lag",
        *(
            row
            for number, other in enumerate(others)
            for row in (
                known | {"topic": f"t{number}"},
                known | {"topic": f"t{number}", "partition": 1} | other,
            )
        ),
    )

    lines = [line[1:] for line in world.lines("lag", "--total", "topic")]

    assert lines == [
        ["t0", "2", "5", "2", "0", "0", "5", "3.0", "1", "60.0"],
        ["t1", "2", ">10", "4", "0", "1", ">5", "3.0", "2", "60.0"],
        ["t2", "2", "10", "4", "0", "0", "5", ">3.0", "2", "60.0"],
        ["t3", "2", "10", "4", "0", "0", "5", ">3.0", "2", "60.0"],
        ["t4", "2", "10", "4", "0", "0", "5", "3.0", ">1", "60.0"],
        ["t5", "2", "10", "4", "0", "0", "5", "3.0", "2", "<60.0"],
        ["t6", "2", "10", ">2", "0", "0", "5", "3.0", "2", "60.0"],
    ]


def test_totals_of_two_clusters_stay_apart(world: Any) -> None:
    world.write("partition_lag", {"lag": 1}, {"cluster": "d", "lag": 2})

    rows = json.loads(world.run("lag", "--total", "group", "-o", "json").stdout)

    assert [(row["cluster"], row["lag"]) for row in rows] == [("c", 1), ("d", 2)]


def test_json_has_table_names_nulls_and_times(world: Any) -> None:
    world.write("partition_lag", _ROW, _ROW | {"partition": 1, "lag": None})

    rows = json.loads(world.run("lag", "-o", "json").stdout)

    assert [row["lag"] for row in rows] == [12, None]
    assert rows[0]["group_id"] == "billing"
    assert rows[0]["provisional"] is False
    assert rows[0]["updated_at"] == "2026-01-31T12:00:00.000000Z"


def test_csv_has_a_header_and_nothing_for_null(world: Any) -> None:
    world.write("partition_lag", _ROW, _ROW | {"partition": 1, "lag": None, "client_id": 'a,"b'})

    rows = list(csv.DictReader(io.StringIO(world.run("lag", "-o", "csv").stdout)))

    assert [row["lag"] for row in rows] == ["12", ""]
    assert rows[1]["client_id"] == 'a,"b'
    assert rows[0]["provisional"] == "false"


def test_wide_adds_columns_to_text(world: Any) -> None:
    world.write("partition_lag", _ROW | {"arrival_rate": 1.26})

    heading, line = world.run("lag", "--wide").stdout.splitlines()

    assert "RAW-LAG" in heading
    assert " 1.3 " in line


def test_control_characters_of_a_name_do_not_reach_the_terminal(world: Any) -> None:
    world.write("partition_lag", {"group_id": "a\x1b[31m\nb"})

    assert world.lines("lag")[0][0] == r"a\x1b[31m\nb"


def test_long_names_are_not_cut_in_a_pipe(world: Any) -> None:
    world.write("partition_lag", {"group_id": "g" * 300})

    assert world.lines("lag")[0][0] == "g" * 300


def test_nothing_found_is_exit_status_1(world: Any) -> None:
    world.write("partition_lag", _ROW)

    result = world.run("lag", "-g", "none", "-o", "json")

    assert (result.exit_code, json.loads(result.stdout), result.stderr) == (1, [], "no partition matches\n")


def test_empty_table_is_told_from_a_filter_that_matches_nothing(world: Any) -> None:
    world.write("partition_lag", _ROW)
    world.replace("partition_lag")

    result = world.run("lag")

    assert (result.exit_code, result.stderr.count("`lagwise health`")) == (1, 1)
    assert "matches" not in result.stderr


def test_no_table_is_one_line_that_says_what_to_do(world: Any) -> None:
    result = world.run("lag")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"lagwise: no table partition_lag under {world.root}: ")
    assert len(result.stderr.splitlines()) == 1


def test_start_of_a_driver_makes_the_rows_no_younger(world: Any) -> None:
    world.write("partition_lag", _ROW, stamp=Stamp(batch_id=1, at_ms=now_ms() - 604_800_000))
    world.complete()
    Store(str(world.root), term=7).touch()

    assert world.run("lag").stderr.startswith("the table was written 60480")


def test_table_from_the_future_shows_that_clocks_differ(world: Any) -> None:
    """The driver's clock was ahead; the driver may have died since."""
    world.write("partition_lag", _ROW, stamp=Stamp(batch_id=1, at_ms=now_ms() + 600_000))

    told = world.run("lag").stderr

    assert told.startswith(
        "the newest batch began 10 min from now by this machine's clock, so its age is unknown;"
    )


def test_rows_are_provisional_for_the_reason_that_the_batch_gives(world: Any) -> None:
    reason = "1 of 50 partitions of __consumer_offsets cannot be read: broker 2 does not answer"
    stamp = Stamp(batch_id=1, at_ms=now_ms(), behind=(3,), reason=reason)
    world.write("partition_lag", _ROW | {"provisional": True}, stamp=stamp)

    assert world.run("lag").stderr == f"* 1 of 1 rows are provisional: {reason}\n"


def test_old_table_is_told_on_stderr(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("partition_lag", _ROW)
    monkeypatch.setattr(Tables, "written_at", lambda *_: datetime(2020, 1, 1, tzinfo=timezone.utc))

    result = world.run("lag")

    assert result.exit_code == 0
    assert result.stderr.startswith("the table was written ")


@pytest.mark.parametrize("arguments", [["--sort", "colour"], ["--top", "0"], ["-o", "xml"], ["--nope"]])
def test_wrong_usage_is_exit_status_2(world: Any, arguments: list[str]) -> None:
    assert world.run("lag", *arguments).exit_code == 2
