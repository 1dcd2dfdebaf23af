"""A commit is compared with the log of the topic it was made in, and with no other of that name."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.fold.step import assigned_partitions, fold_commits, newest_commits
from pipeline.lag.step import LagSettings, measure_lag
from tests.support.frames import NOW_MS, at, decoded, member, picked, stored_groups, stored_lag, stored_topics

SETTINGS = LagSettings(
    at_ms=NOW_MS,
    batch_id=7,
    behind=(),
    half_life_ms=60_000,
    allowed_lag=0,
    history_interval_ms=60_000,
    history_max_gap_ms=900_000,
)
SHOWN = ("lag", "raw_lag", "log_end_offset", "lag_seconds", "status")
UNKNOWN = (None, None, None, None, "UNKNOWN")

Row = dict[str, Any]


def log(topic_id: str | None, **fields: Any) -> Row:
    """A log of 100 records, asked in this batch and answered with the id, if there is one."""
    answered = {"observed_at": at(0), "topic_id": topic_id, "topic_id_at": at(0) if topic_id else None}
    return {"log_start_offset": 0, "log_end_offset": 100, **answered, **fields}


def held(topic_id: str | None, **fields: Any) -> Row:
    commit = {"committed_offset": 40, "commit_position": 7, "commit_timestamp": at(-20)}
    return {**commit, "commit_topic_id": topic_id, "lag": 60, **fields}


def new(topic_id: str | None, offset: int = 90) -> Row:
    commit = {"row_kind": "commit", "position": 8, "committed_offset": offset}
    return {**commit, "commit_timestamp_ms": NOW_MS - 500, "topic_id": topic_id}


def lags(
    spark: SparkSession, stored: list[Row], topic: Row, batch: tuple[Row, ...] = (), *groups: Row
) -> DataFrame:
    folded = fold_commits(
        stored_lag(spark, *stored),
        newest_commits(decoded(spark, *batch)),
        assigned_partitions(stored_groups(spark, *groups)),
        reread=(),
        behind=(),
    )
    return measure_lag(folded, stored_topics(spark, topic), SETTINGS)


def test_commit_of_a_topic_that_another_has_replaced_has_no_lag(spark: SparkSession) -> None:
    rows = lags(spark, [held("A")], log("B"))

    assert picked(rows, *SHOWN) == [UNKNOWN]
    assert picked(rows, "committed_offset", "commit_topic_id") == [(40, "A")]


def test_commit_of_a_topic_that_the_brokers_have_not_named_yet_has_no_lag(spark: SparkSession) -> None:
    rows = lags(spark, [held("A")], log("A", error="broker 2 does not answer"), (new("B"),))

    assert picked(rows, *SHOWN) == [UNKNOWN]
    assert picked(rows, "committed_offset", "commit_topic_id") == [(90, "B")]


@pytest.mark.parametrize(("of_commit", "of_topic"), [("A", "A"), (None, "B"), ("A", None), (None, None)])
def test_same_id_or_none_at_all_leaves_the_lag(
    spark: SparkSession, of_commit: str | None, of_topic: str | None
) -> None:
    rows = lags(spark, [held(of_commit)], log(of_topic))

    assert picked(rows, "lag", "status") == [(60, "OK")]


def test_commit_without_an_id_is_of_the_topic_that_was_there_after_it(spark: SparkSession) -> None:
    known = lags(spark, [held(None)], log("A"))
    first = lags(spark, [], log("A"), (new(None),))

    assert picked(known, "commit_topic_id") == picked(first, "commit_topic_id") == [("A",)]


@pytest.mark.parametrize(
    "doubt",
    [{"error": "no answer"}, {"topic_id_at": at(-30)}],
    ids=["offsets not answered", "id not answered"],
)
def test_old_id_says_nothing_of_a_commit_without_one(spark: SparkSession, doubt: Row) -> None:
    rows = lags(spark, [], log("A", **doubt), (new(None),))

    assert picked(rows, "lag", "commit_topic_id") == [(10, None)]


def test_commit_without_an_id_is_doubted_for_one_batch_when_the_topic_has_changed(
    spark: SparkSession,
) -> None:
    rows = lags(spark, [held("A")], log("B"), (new(None),))
    next_batch = lags(spark, [held("B", committed_offset=90)], log("B"))

    assert picked(rows, *SHOWN, "commit_topic_id") == [(*UNKNOWN, "B")]
    assert picked(next_batch, "lag") == [(10,)]


def test_commit_of_another_topic_begins_a_new_window_and_is_no_speed(spark: SparkSession) -> None:
    before = held("A", recent_commits=[(30, NOW_MS - 90_000, 5), (40, NOW_MS - 20_000, 6)], drain_rate=2.0)

    rows = lags(spark, [before], log("B"), (new("B", offset=50),))

    assert picked(rows, "lag", "drain_rate", "status") == [(50, 2.0, "OK")]
    assert [tuple(c) for c in rows.select("recent_commits").collect()[0][0]] == [(50, NOW_MS - 500, 50)]


def test_tombstone_leaves_an_assigned_partition_without_a_topic_id(spark: SparkSession) -> None:
    owned = {"members": [member("m", assigned={"t": [0]})]}

    rows = lags(spark, [held("A")], log("B"), ({"row_kind": "tombstone", "position": 8},), owned)

    assert picked(rows, "committed_offset", "commit_topic_id", "log_end_offset", "status") == [
        (None, None, 100, "NOT_COMMITTED")
    ]


def test_commit_of_a_deleted_topic_is_deleted(spark: SparkSession) -> None:
    rows = lags(spark, [held("A")], log("B", deleted_at=at(-3)))

    assert picked(rows, "lag", "status") == [(None, "DELETED")]
