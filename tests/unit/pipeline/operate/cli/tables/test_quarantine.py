import json
from datetime import timedelta
from typing import Any

from tests.support.operate.table_world import NOON


def test_newest_come_first_with_bytes_in_hexadecimal(world: Any) -> None:
    world.write(
        "quarantine",
        {"offset": 1, "key": b"\x00\xff", "value": None, "updated_at": NOON - timedelta(hours=1)},
        {"offset": 2, "key": b"", "value": b"\x01"},
    )

    offsets_keys_values = [(line[3], line[6:]) for line in world.lines("quarantine")]

    assert offsets_keys_values == [("2", ["01"]), ("1", ["00ff", "-"])]


def test_last_bounds_the_rows(world: Any) -> None:
    world.write("quarantine", *({"offset": offset} for offset in range(5)))

    assert [line[3] for line in world.lines("quarantine", "--last", "2")] == ["4", "3"]


def test_long_values_are_cut_in_text_and_whole_in_json(world: Any) -> None:
    world.write("quarantine", {"value": b"\xab" * 100})

    assert f"{'ab' * 24}... (100 bytes)" in world.run("quarantine").stdout
    (row,) = json.loads(world.run("quarantine", "-o", "json").stdout)
    assert row["value"] == "ab" * 100


def test_time_after_the_year_9999_reads_as_unknown_in_every_form(world: Any) -> None:
    world.write("quarantine", {"timestamp": 1_790_000_000_000_000_000})

    (line,) = world.lines("quarantine", "--wide")
    (row,) = json.loads(world.run("quarantine", "-o", "json").stdout)
    assert (line[-3], row["timestamp"]) == ("-", None)
    assert world.run("quarantine", "-o", "csv").exit_code == 0


def test_empty_quarantine_is_exit_status_1(world: Any) -> None:
    world.write("quarantine", {"kind": "group_metadata"})

    assert world.run("quarantine", "--kind", "group_*").exit_code == 0
    assert world.run("quarantine", "--kind", "offset_*").exit_code == 1
