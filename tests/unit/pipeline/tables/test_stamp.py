"""What a commit of a table says, now and in tables of other versions."""

import json
from typing import Any

import pytest

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
