"""The last hour of every group from one read, the same as the plot of each group, and once a minute."""

from datetime import timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.operate.serve.page.spark import spark
from pipeline.operate.serve.snapshot import Snapshot, snapshot
from pipeline.operate.serve.views.history import past_of
from pipeline.operate.serve.views.sparks import POINTS, SPAN, Sparks
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.upkeep.creation import create_tables
from tests.support.operate.table_world import NOON, World

_GAP = timedelta(minutes=10)


def opened(world: World) -> Snapshot:
    world.complete()
    return snapshot(Tables(str(world.root)), ("partition_lag", "lag_history"))


def row(minutes: float, lag: int | None, **more: Any) -> dict[str, Any]:
    return {"lag": lag, "updated_at": NOON - timedelta(minutes=minutes), **more}


def test_lag_is_added_up_over_partitions_and_holds_until_the_next_row_or_for_the_gap(world: World) -> None:
    world.write(
        "lag_history",
        *(row(60, 5), row(57.5, 7), row(57, None), row(30, 1)),
        *(row(60, 100, partition=1), row(59, 200, partition=1)),
        row(60, 9, group_id="other", topic="orders"),
    )

    found = Sparks(max_gap=_GAP).of(opened(world), end=NOON)

    assert [*found] == ["billing", "other"]
    billing = found["billing"]
    assert len(billing) == POINTS
    assert billing[:4] == [105, 205, 205, 200]
    assert billing[11:13] == [200, None], "unknown for longer than the gap"
    assert (billing[29], billing[30], billing[40], billing[41]) == (None, 1, 1, None)
    assert found["other"] == [9] * 11 + [None] * 50


def test_all_groups_read_as_each_one_does(world: World) -> None:
    random = Random(7)
    rows = [
        row(
            random.randrange(75 * 60) / 60,
            random.choice((None, 0, random.randrange(10**12))),
            group_id=random.choice(("a", "b", "c")),
            topic=random.choice(("t", "u")),
            partition=random.randrange(4),
        )
        for _ in range(400)
    ]
    world.write("lag_history", *rows)
    found = opened(world)

    sparks = Sparks(max_gap=_GAP).of(found, end=NOON)

    assert len(sparks) == 3
    for group_id, values in sparks.items():
        past = past_of(found, group_id, end=NOON, spans=(SPAN,), max_gap=_GAP)
        assert past is not None
        assert [lag for _, lag in past.lag[::2]] == values, group_id


def test_hour_is_read_once_a_minute(world: World) -> None:
    world.write("lag_history", row(5, 1))
    found, sparks = opened(world), Sparks(max_gap=_GAP)
    read: list[str] = []

    def reads(table: OpenTable, **more: Any) -> Any:
        read.append(table.name)
        return original(table, **more)

    original = OpenTable.read
    with patch.object(OpenTable, "read", reads):
        for seconds in (0, 30, 59, 60):
            sparks.of(found, end=NOON + timedelta(seconds=seconds))

    assert read == ["lag_history", "lag_history"]


@pytest.mark.parametrize(("most", "groups"), [(3, ["billing"]), (2, [])])
def test_hour_of_too_many_rows_is_not_read(world: World, most: int, groups: list[str]) -> None:
    # As the job makes them: without statistics of times in the log.
    create_tables(str(world.root), retention_hours=1, storage_options={})
    world.write("lag_history", *(row(300, lag) for lag in range(9)))
    world.write("lag_history", *(row(5, lag) for lag in range(3)))

    assert [*Sparks(max_gap=_GAP, most_rows=most).of(opened(world), end=NOON)] == groups


def test_table_without_rows_gives_no_group(world: World) -> None:
    assert Sparks(max_gap=_GAP).of(opened(world), end=NOON) == {}


def test_spark_has_a_gap_where_nothing_was_known_and_ends_with_the_lag_of_now() -> None:
    html = spark([0, 10, None, 5, None, 3, 3, 3], 20)

    assert 'aria-label="lag of the last hour: 0 to 10, now 20"' in html
    assert '<path d="M0,19 1,10M3,15h0M5,16 7,16 8,1"/>' in html


@pytest.mark.parametrize("values", [None, [None] * 3])
def test_group_without_history_has_no_spark(values: list[int | None] | None) -> None:
    assert spark(values, 5) == "-"


def test_lag_that_is_unknown_now_ends_the_line() -> None:
    html = spark([0, 0], None)

    assert "now unknown" in html
    assert 'd="M0,19 1,19"' in html
