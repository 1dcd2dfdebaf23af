"""The stored state brought forward by one batch."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.fold.step import assigned_partitions, fold_commits, fold_groups, missing_topics, newest_commits
from tests.support.frames import at, decoded, member, picked, stored_groups, stored_lag, stored_topics


def commit(position: int, offset: int, **fields: Any) -> dict[str, Any]:
    row = {
        "row_kind": "commit",
        "position": position,
        "committed_offset": offset,
        "commit_timestamp_ms": 1000,
    }
    return row | fields


def tombstone(position: int, **fields: Any) -> dict[str, Any]:
    return {"row_kind": "tombstone", "position": position} | fields


def folded(
    spark: SparkSession,
    stored: list[dict[str, Any]],
    batch: list[dict[str, Any]],
    groups: list[dict[str, Any]] | None = None,
    *,
    reread: tuple[int, ...] = (),
    behind: tuple[int, ...] = (),
) -> list[tuple[Any, ...]]:
    result = fold_commits(
        stored_lag(spark, *stored),
        newest_commits(decoded(spark, *batch)),
        assigned_partitions(stored_groups(spark, *(groups or []))),
        reread=reread,
        behind=behind,
    )
    return picked(
        result, "group_id", "partition", "committed_offset", "commit_position", "has_new_commit", "confirmed"
    )


def test_commit_at_a_later_position_wins_even_with_a_lower_offset_and_an_earlier_clock(
    spark: SparkSession,
) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]

    assert folded(spark, stored, [commit(8, 20, commit_timestamp_ms=1)]) == [("g", 0, 20, 8, True, True)]


def test_commit_at_an_earlier_position_never_moves_a_group_back(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]

    assert folded(spark, stored, [commit(6, 99)]) == [("g", 0, 50, 7, False, True)]


def test_last_of_several_commits_in_a_batch_counts(spark: SparkSession) -> None:
    batch = [commit(9, 3), commit(11, 1), commit(10, 2), commit(4, 5, partition=1)]

    assert folded(spark, [], batch) == [("g", 0, 1, 11, True, True), ("g", 1, 5, 4, True, True)]


def test_tombstone_removes_the_row(spark: SparkSession) -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7},
        {"partition": 1, "committed_offset": 5, "commit_position": 8},
    ]

    assert folded(spark, stored, [tombstone(9)]) == [("g", 1, 5, 8, False, True)]


def test_tombstone_before_the_commit_that_stands_removes_nothing(spark: SparkSession) -> None:
    assert folded(spark, [], [tombstone(9), commit(10, 4)]) == [("g", 0, 4, 10, True, True)]


def test_tombstone_of_a_partition_somebody_owns_leaves_it_without_a_commit(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]
    groups = [{"members": [member("m", assigned={"t": [0]})]}]

    assert folded(spark, stored, [tombstone(9)], groups) == [("g", 0, None, 9, False, True)]


def test_owned_partition_without_a_commit_has_a_row(spark: SparkSession) -> None:
    groups = [{"members": [member("m", assigned={"t": [1]})]}]

    assert folded(spark, [], [], groups) == [("g", 1, None, None, False, True)]


def test_group_that_moved_to_another_offsets_partition_goes_on_from_its_positions_there(
    spark: SparkSession,
) -> None:
    stored = [{"committed_offset": 50, "commit_position": 700, "offsets_partition": 1}]

    assert folded(spark, stored, [commit(3, 51, offsets_partition=2)]) == [("g", 0, 51, 3, True, True)]


def test_rows_that_a_reading_from_the_start_has_not_met_are_dropped_at_its_end(spark: SparkSession) -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7, "confirmed": False},
        {"partition": 1, "committed_offset": 5, "commit_position": 8, "confirmed": True},
    ]

    assert folded(spark, stored, [], behind=(3,)) == [
        ("g", 0, 50, 7, False, False),
        ("g", 1, 5, 8, False, True),
    ]
    assert folded(spark, stored, []) == [("g", 1, 5, 8, False, True)]


def test_partition_read_from_its_start_confirms_the_commits_that_it_meets(spark: SparkSession) -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7},
        {"partition": 1, "committed_offset": 5, "commit_position": 8},
        {"partition": 2, "committed_offset": 6, "commit_position": 9, "offsets_partition": 4},
    ]

    rows = folded(spark, stored, [commit(7, 50)], reread=(3,), behind=(3,))

    assert rows == [
        ("g", 0, 50, 7, True, True),
        ("g", 1, 5, 8, False, False),
        ("g", 2, 6, 9, False, True),
    ]


def test_log_made_again_counts_from_its_own_positions(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 700}]

    assert folded(spark, stored, [commit(2, 20)], reread=(3,)) == [("g", 0, 20, 2, True, True)]


def test_first_record_of_a_later_batch_counts_while_its_row_is_not_met_yet(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 700, "confirmed": False}]

    assert folded(spark, stored, [commit(2, 20)], behind=(3,)) == [("g", 0, 20, 2, True, True)]


def test_tombstone_met_while_reading_from_the_start_removes_the_row(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 700}]

    assert folded(spark, stored, [tombstone(2)], reread=(3,), behind=(3,)) == []


def test_row_of_which_nobody_knows_the_partition_has_to_be_met_again(spark: SparkSession) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7, "offsets_partition": None}]

    assert folded(spark, stored, [], reread=(3,), behind=(3,)) == []


@pytest.mark.parametrize(
    ("stored", "reread", "is_reread"),
    [
        pytest.param([{"committed_offset": 50, "commit_position": 7}], (), False, id="goes on"),
        pytest.param([{"committed_offset": 50, "commit_position": 700}], (3,), True, id="from the start"),
        pytest.param(
            [{"committed_offset": 50, "commit_position": 700, "confirmed": False}],
            (),
            True,
            id="from the start, batches ago",
        ),
        pytest.param([{"committed_offset": 50, "commit_position": 7}], (4,), False, id="another partition"),
    ],
)
def test_commit_that_may_be_older_than_the_known_one_is_told(
    spark: SparkSession, stored: list[dict[str, Any]], reread: tuple[int, ...], is_reread: bool
) -> None:
    result = fold_commits(
        stored_lag(spark, *stored),
        newest_commits(decoded(spark, commit(8, 51))),
        assigned_partitions(stored_groups(spark)),
        reread=reread,
        behind=(),
    )

    assert picked(result, "committed_offset", "is_reread") == [(51, is_reread)]


def test_partition_given_to_two_members_has_one_row(spark: SparkSession) -> None:
    groups = [
        {"generation": 4, "members": [member("b", assigned={"t": [0]}), member("a", assigned={"t": [0]})]}
    ]

    rows = picked(
        assigned_partitions(stored_groups(spark, *groups)), "partition", "owner.member_id", "owner.generation"
    )

    assert rows == [(0, "a", 4)]


def group_event(
    position: int, group_type: str = "classic", *, gone: bool = False, **fields: Any
) -> dict[str, Any]:
    kind = "group_tombstone" if gone else "group"
    return {"row_kind": kind, "position": position, "group_type": group_type, "members": []} | fields


def groups_after(
    spark: SparkSession,
    stored: list[dict[str, Any]],
    events: list[dict[str, Any]],
    *,
    reread: tuple[int, ...] = (),
    behind: tuple[int, ...] = (),
) -> list[tuple[Any, ...]]:
    result = fold_groups(
        stored_groups(spark, *stored),
        decoded(spark, *events),
        reread=reread,
        behind=behind,
    )
    return picked(result, "group_id", "group_type", "generation", "group_position", "confirmed")


def test_newest_group_record_stands(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(spark, stored, [group_event(9, generation=5), group_event(8, generation=4)]) == [
        ("g", "classic", 5, 9, True)
    ]


def test_deleted_group_is_gone_and_made_again_it_is_back(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(spark, stored, [group_event(9, gone=True)]) == []
    assert groups_after(spark, stored, [group_event(9, gone=True), group_event(10, generation=1)]) == [
        ("g", "classic", 1, 10, True)
    ]


def test_group_that_became_a_consumer_group_is_one_whichever_record_came_first(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 5}]
    tombstone_first = [group_event(9, gone=True), group_event(10, "consumer")]
    header_first = [group_event(9, "consumer"), group_event(10, gone=True)]

    assert groups_after(spark, stored, tombstone_first) == [("g", "consumer", None, 10, True)]
    assert groups_after(spark, stored, header_first) == [("g", "consumer", None, 9, True)]


def test_commit_that_a_reading_from_the_start_has_not_met_goes_and_its_owner_stays(
    spark: SparkSession,
) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]
    owner = [{"generation": 3, "members": [member("m", assigned={"t": [0]})]}]

    assert folded(spark, stored, [], owner, reread=(3,), behind=(3,)) == [("g", 0, 50, 7, False, False)]
    assert folded(spark, stored, [], owner, reread=(3,)) == [("g", 0, None, None, False, True)]


def test_group_that_a_reading_from_the_start_has_not_met_is_dropped_at_its_end(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(spark, stored, [], reread=(3,), behind=(3,)) == [("g", "classic", 3, 5, False)]
    assert groups_after(spark, stored, [], reread=(3,)) == []
    assert groups_after(spark, stored, [], reread=(4,)) == [("g", "classic", 3, 5, True)]


def test_group_record_of_a_log_made_again_counts_whatever_its_position(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 500}]

    assert groups_after(spark, stored, [group_event(2, generation=1)], reread=(3,)) == [
        ("g", "classic", 1, 2, True)
    ]


def test_group_tombstone_of_a_log_made_again_removes_the_group_that_was_known(spark: SparkSession) -> None:
    stored = [{"generation": 3, "group_position": 500}]

    assert groups_after(spark, stored, [group_event(2, gone=True)], reread=(3,), behind=(3,)) == []


def test_topics_with_a_partition_that_was_not_observed_are_missing(spark: SparkSession) -> None:
    stored = stored_topics(
        spark,
        {"topic": "whole"},
        {"topic": "shrunk"},
        {"topic": "shrunk", "partition": 1},
        {"topic": "gone"},
        {"topic": "known to be gone", "deleted_at": at(-60)},
    )
    seen = [
        {"row_kind": "log_offset", "topic": topic, "partition": 0} for topic in ("whole", "shrunk", "new")
    ]

    assert missing_topics(stored, decoded(spark, *seen)) == ["gone", "shrunk"]
