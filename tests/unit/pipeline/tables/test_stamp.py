"""What a commit of a table says, now and in tables of other versions."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from pipeline.errors import StoreError
from pipeline.kafka.positions import Position, Span
from pipeline.tables.stamp import Stamp, newest_stamp

FULL = Stamp(
    batch_id=3,
    at_ms=1_700_000_000_000,
    behind=(1, 2),
    reason="not read yet",
    held="partition 0 of acks is not read to its end yet",
    cluster_id="c1",
    filters="abc",
    positions={("__consumer_offsets", 11): Position(40, 2, 9), ("acks", 0): Position(7)},
    spans=(Span(topic="acks", partition=0, start=3, end=7, leader_epoch=1),),
    reread=(("__consumer_offsets", 11),),
    written_ms={"consumer_groups": 12},
)


def test_stamp_survives_json() -> None:
    assert Stamp.from_json(FULL.to_json()) == FULL


def test_stamp_of_no_positions_is_told_from_one_without_any() -> None:
    empty = Stamp(batch_id=3, at_ms=1, positions={})
    without = Stamp(batch_id=3, at_ms=1)

    assert Stamp.from_json(empty.to_json()).positions == {}
    assert Stamp.from_json(without.to_json()).positions is None


def test_stamp_is_one_line() -> None:
    assert "\n" not in FULL.to_json()


def test_stamp_of_a_version_that_kept_positions_in_the_checkpoint_is_read() -> None:
    older = '{"query_id": "", "batch_id": 3, "at_ms": 5, "behind": [1, 2], "reason": "not read yet"}'

    assert Stamp.from_json(older) == Stamp(batch_id=3, at_ms=5, behind=(1, 2), reason="not read yet")


def test_what_a_later_version_adds_is_left_out() -> None:
    later = json.dumps(json.loads(FULL.to_json()) | {"colour": "blue"})

    assert Stamp.from_json(later) == FULL


class Log:
    """Stands for a `DeltaTable`, of which two batches have written an old and an older commit; others have no stamp.

    Attributes:
        read: How many commits were asked for, by search.
    """

    def __init__(self, *, newest: int, commits: int) -> None:
        self._commits: list[dict[str, Any]] = [{} for _ in range(commits)]
        for number in (newest + 1, newest):
            self._commits[number]["userMetadata"] = Stamp(batch_id=number, at_ms=1).to_json()
        self.read: list[int | None] = []

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """As `DeltaTable`: newest first."""
        self.read.append(limit)
        return self._commits[:limit]


@pytest.mark.parametrize(
    ("newest", "read"), [(0, [2]), (1, [2]), (2, [2, 50]), (49, [2, 50]), (50, [2, 50, None])]
)
def test_no_more_commits_are_read_than_it_takes_to_find_the_newest_stamp(
    newest: int, read: list[int | None]
) -> None:
    log: Any = Log(newest=newest, commits=90)

    assert newest_stamp(log) == Stamp(batch_id=newest, at_ms=1)
    assert log.read == read


def stamped_table(folder: Path, *, batches: int) -> DeltaTable:
    """A table of which each version from 0 on has the stamp of the batch of that number."""
    for number in range(batches):
        metadata = {"userMetadata": Stamp(batch_id=number, at_ms=1).to_json()}
        write_deltalake(
            folder,
            pa.table({"batch": [number]}),
            mode="overwrite",
            commit_properties=CommitProperties(custom_metadata=metadata),
        )
    return DeltaTable(folder)


def test_stamp_of_a_restored_table_is_that_of_the_rows_that_came_back(tmp_path: Path) -> None:
    table = stamped_table(tmp_path, batches=5)
    table.restore(3)
    table.restore(1)

    assert newest_stamp(table) == Stamp(batch_id=1, at_ms=1)

    table.restore(6 - 1)  # the version of the first RESTORE
    assert newest_stamp(table) == Stamp(batch_id=3, at_ms=1)
    assert table.to_pyarrow_table()["batch"].to_pylist() == [3]


def test_stamp_of_a_table_that_was_restored_to_a_time_is_that_of_the_rows_that_came_back(
    tmp_path: Path,
) -> None:
    table = stamped_table(tmp_path, batches=3)
    oldest_ms = table.history()[-1]["timestamp"]
    table.restore(datetime.fromtimestamp(oldest_ms / 1000, UTC))

    (batch,) = table.to_pyarrow_table()["batch"].to_pylist()
    assert newest_stamp(table) == Stamp(batch_id=batch, at_ms=1)


def test_table_that_spark_restored_to_a_time_without_a_zone_has_no_stamp() -> None:
    class Restored(Log):
        def history(self, limit: int | None = None) -> list[dict[str, Any]]:
            restore = {"version": None, "timestamp": "2026-11-28 06:42:10.196"}
            return [{"operation": "RESTORE", "operationParameters": restore}, *super().history(limit)]

    log: Any = Restored(newest=0, commits=3)

    assert newest_stamp(log) is None


def test_messages_of_operations_that_keep_all_rows_hide_no_stamp(tmp_path: Path) -> None:
    table = stamped_table(tmp_path, batches=2)
    message = CommitProperties(custom_metadata={"userMetadata": "nightly maintenance"})

    table.optimize.z_order(["batch"], commit_properties=message)
    table.alter.set_table_properties({"delta.appendOnly": "false"}, commit_properties=message)
    table.alter.add_constraint({"positive": "batch >= 0"}, commit_properties=message)

    assert newest_stamp(table) == Stamp(batch_id=1, at_ms=1)


def test_message_of_a_commit_that_may_have_changed_rows_is_told(tmp_path: Path) -> None:
    table = stamped_table(tmp_path, batches=2)
    table.delete("batch = 1", commit_properties=CommitProperties(custom_metadata={"userMetadata": "by hand"}))

    with pytest.raises(StoreError, match="another program has written to the table"):
        newest_stamp(table)
