"""`lagwise rebalances`."""

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.operate.table_world import NOON

SINCE = ("--since", "2026-01-01")
_FIELDS = {"client_id": "c", "client_host": "/h", "topics": ["t"], "owned": {}}
_A, _B = (_FIELDS | {"member_id": name, "assigned": {"t": [n]}} for n, name in enumerate("ab"))


def change(hours: int, why: str, **fields: Any) -> dict[str, Any]:
    """A row so many hours before noon."""
    at = NOON - timedelta(hours=hours)
    return {"why": why, "updated_at": at, "date": at.date(), "state": "Stable", **fields}


@pytest.fixture
def changed(world: Any) -> Any:
    """A group that grew and shrank, one of KIP-848, and one that is gone."""
    world.write(
        "group_history",
        change(1, "left", generation=6, members=[_B], joined=[], left=["a"]),
        change(30, "first_seen", generation=4, members=[_A]),
        change(2, "joined", generation=5, members=[_A, _B], joined=["b"], left=[]),
        change(5, "rebalanced", group_id="new", group_type="consumer", state=None, generation=9),
        change(9, "first_seen", group_id="old", generation=1, members=[]),
        change(8, "gone", group_id="old", state=None),
    )
    return world


def test_changes_come_oldest_first_and_what_is_not_known_is_no_number(changed: Any) -> None:
    lines = changed.lines("rebalances", *SINCE)

    assert [line[1:] for line in lines] == [
        ["billing", "4", "classic", "Stable", "1", "-", "-", "first_seen"],
        ["old", "1", "classic", "Stable", "0", "-", "-", "first_seen"],
        ["old", "-", "classic", "-", "-", "-", "-", "gone"],
        ["new", "9", "consumer", "-", "-", "-", "-", "rebalanced"],
        ["billing", "5", "classic", "Stable", "2", "1", "0", "joined"],
        ["billing", "6", "classic", "Stable", "1", "0", "1", "left"],
    ]
    assert lines[0][0] == "2026-01-30T06:00:00Z"


def test_span_and_group_are_filters(changed: Any) -> None:
    since = ("--since", "2026-01-31T09:00")

    assert [line[2] for line in changed.lines("rebalances", *since, "-g", "bill*")] == ["5", "6"]
    assert changed.run("rebalances", *since, "-g", "new").exit_code == 1


def test_moment_shows_each_group_as_it_was_however_long_ago_it_changed(changed: Any) -> None:
    lines = changed.lines("rebalances", "--at", "2026-01-31T10:30:00Z")

    assert [line[1:3] for line in lines] == [["billing", "5"], ["new", "9"]]
    assert [line[1:3] for line in changed.lines("rebalances", "--at", "2026-02-28")] == [
        ["billing", "6"],
        ["new", "9"],
    ]
    earlier = changed.lines("rebalances", "--at", "2026-01-31T03:30:00Z")
    assert [line[1] for line in earlier] == ["billing", "old"]


def test_times_with_an_offset_are_the_same_as_in_utc(changed: Any) -> None:
    at = changed.lines("rebalances", "--at", "2026-01-30T22:30:00-05:00")
    since = changed.lines("rebalances", "--since", "2026-01-31T00:30:00+19:00")

    assert [line[1] for line in at] == ["billing", "old"]
    assert [line[2] for line in since] == ["4", "1", "-", "9", "5", "6"]


def test_members_are_shown_with_what_they_were_given(changed: Any) -> None:
    lines = changed.lines("rebalances", "--at", "2026-01-31T10:30:00Z", "--members")

    assert [line[1:] for line in lines] == [
        ["billing", "5", "a", "/h", "c", "1", "t:0"],
        ["billing", "5", "b", "/h", "c", "1", "t:1"],
    ]


def test_programs_get_everything(changed: Any) -> None:
    arguments = ("rebalances", *SINCE, "-g", "billing")

    rows = json.loads(changed.run(*arguments, "-o", "json").stdout)
    assert [(row["why"], row["joined"], row["left"]) for row in rows] == [
        ("first_seen", None, None),
        ("joined", ["b"], []),
        ("left", [], ["a"]),
    ]
    assert rows[1]["members"][1]["assigned"] == {"t": [1]}
    lines = list(csv.DictReader(io.StringIO(changed.run(*arguments, "-o", "csv").stdout)))
    assert [line["joined"] for line in lines] == ["", '["b"]', "[]"]


def test_nothing_that_matches_is_exit_status_1(world: Any) -> None:
    world.write("group_history", change(1, "joined"))

    done = world.run("rebalances", "--group", "other", "--since", "2026-01-01")

    assert (done.exit_code, done.stdout.splitlines()[1:]) == (1, [])
    assert "no row since 2026-01-01T00:00:00Z until" in done.stderr
