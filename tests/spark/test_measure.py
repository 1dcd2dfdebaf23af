"""What is measured of folded rows."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.fold.step import assigned_partitions, fold_commits, fold_topic_offsets, newest_commits
from pipeline.lag.step import LagSettings, TopicSettings, measure_lag, measure_topic_offsets
from tests.support.frames import NOW_MS, at, decoded, member, picked, stored_groups, stored_lag, stored_topics

TOPICS = TopicSettings(at_ms=NOW_MS, batch_id=7, listing_error=None, half_life_ms=60_000)
LAGS = LagSettings(
    at_ms=NOW_MS,
    batch_id=7,
    behind=(),
    half_life_ms=60_000,
    allowed_lag=0,
    history_interval_ms=60_000,
    history_max_gap_ms=900_000,
)


def observed(partition: int = 0, *, end: int | None, error: str | None = None) -> dict[str, Any]:
    return {
        "row_kind": "log_offset",
        "partition": partition,
        "log_start_offset": None if end is None else 0,
        "log_end_offset": end,
        "isolation": "read_uncommitted",
        "observed_at_ms": NOW_MS,
        "error": error,
    }


def topics(
    spark: SparkSession,
    stored: list[dict[str, Any]],
    now: list[dict[str, Any]],
    settings: TopicSettings = TOPICS,
) -> DataFrame:
    return measure_topic_offsets(
        fold_topic_offsets(stored_topics(spark, *stored), decoded(spark, *now)), settings
    )


KNOWN = {
    "log_start_offset": 0,
    "log_end_offset": 100,
    "isolation": "read_uncommitted",
    "observed_at": at(-10),
}


def test_answer_replaces_what_was_known_and_gives_a_rate(spark: SparkSession) -> None:
    rows = picked(
        topics(spark, [KNOWN], [observed(end=150)]), "log_end_offset", "observed_at", "arrival_rate", "error"
    )

    assert rows == [(150, at(0).replace(tzinfo=None), 5.0, None)]


def test_no_answer_keeps_the_value_its_age_and_says_why(spark: SparkSession) -> None:
    rows = picked(
        topics(spark, [KNOWN], [observed(end=None, error="timed out")]),
        "log_end_offset",
        "observed_at",
        "error",
    )

    assert rows == [(100, at(-10).replace(tzinfo=None), "timed out")]


def test_topic_that_is_gone_when_asked_for_by_name_is_deleted_since_then(spark: SparkSession) -> None:
    gone = replace(TOPICS, remaining={"t": 0})

    first = picked(topics(spark, [KNOWN], [], gone), "deleted_at")
    later = picked(topics(spark, [KNOWN | {"deleted_at": at(-5)}], []), "deleted_at")

    assert (first, later) == ([(at(0).replace(tzinfo=None),)], [(at(-5).replace(tzinfo=None),)])


def test_topic_that_is_only_missing_from_the_listing_stays_and_says_why(spark: SparkSession) -> None:
    refused = replace(TOPICS, unconfirmed={"t": "no right to describe it"})

    rows = [
        picked(topics(spark, [KNOWN], [], how), "log_end_offset", "deleted_at", "error")
        for how in (refused, TOPICS)
    ]

    assert rows == [
        [(100, None, "no right to describe it")],
        [(100, None, "missing from the brokers' list, though asked for by name it is not gone")],
    ]


def test_only_partitions_that_the_topic_no_longer_has_are_deleted(spark: SparkSession) -> None:
    stored = [KNOWN | {"partition": number} for number in range(3)]

    rows = picked(
        topics(spark, stored, [observed(end=150)], replace(TOPICS, remaining={"t": 2})),
        "partition",
        "deleted_at",
    )

    assert rows == [(0, None), (1, None), (2, at(0).replace(tzinfo=None))]


@pytest.mark.parametrize(
    ("stored_id", "observed_id", "rate", "kept_id"),
    [
        ("A", "B", None, "B"),
        ("A", "A", 5.0, "A"),
        ("A", None, 5.0, "A"),
        (None, "B", 5.0, "B"),
        (None, None, 5.0, None),
    ],
)
def test_other_topic_under_the_same_name_starts_from_scratch(
    spark: SparkSession,
    stored_id: str | None,
    observed_id: str | None,
    rate: float | None,
    kept_id: str | None,
) -> None:
    stored = KNOWN | {"topic_id": stored_id, "arrival_rate": 5.0, "samples": [(NOW_MS - 10_000, 100)]}

    (row,) = picked(
        topics(spark, [stored], [observed(end=150) | {"topic_id": observed_id}]),
        "arrival_rate",
        "topic_id",
        "samples",
    )

    assert row[:2] == (rate, kept_id)
    assert len(row[2]) == (1 if rate is None else 2)


def test_id_without_an_answer_leaves_the_old_topic(spark: SparkSession) -> None:
    unanswered = observed(end=None, error="leader not available") | {"topic_id": "B"}

    rows = picked(topics(spark, [KNOWN | {"topic_id": "A"}], [unanswered]), "log_end_offset", "topic_id")

    assert rows == [(100, "A")]


def test_id_has_an_age_of_its_own(spark: SparkSession) -> None:
    stored = KNOWN | {"topic_id": "A", "topic_id_at": at(-10)}

    without, named = (
        picked(
            topics(spark, [stored], [observed(end=150) | {"topic_id": given}]), "observed_at", "topic_id_at"
        )
        for given in (None, "A")
    )

    now, before = at(0).replace(tzinfo=None), at(-10).replace(tzinfo=None)
    assert (without, named) == ([(now, before)], [(now, now)])


def test_unanswered_questions_do_not_move_the_rate(spark: SparkSession) -> None:
    stored = KNOWN | {"arrival_rate": 5.0, "samples": [(NOW_MS - 10_000, 100)]}
    away = topics(spark, [stored], [observed(end=None, error="broker 2 did not answer within 10 s")])
    still_known = [row.asDict() for row in away.withColumn("cluster", F.lit("local")).collect()]

    (row,) = (
        topics(spark, still_known, [observed(end=150)], replace(TOPICS, at_ms=NOW_MS))
        .select("log_end_offset", "arrival_rate", "error", "samples")
        .collect()
    )

    # 50 records in the ten seconds since the last answer, whatever was asked in between.
    assert (row["log_end_offset"], row["arrival_rate"], row["error"]) == (150, 5.0, None)
    assert [tuple(sample) for sample in row["samples"]] == [(NOW_MS - 10_000, 100), (NOW_MS, 150)]


def test_failed_listing_deletes_nothing(spark: SparkSession) -> None:
    failed = replace(TOPICS, listing_error="no broker")

    rows = picked(topics(spark, [KNOWN], [], failed), "log_end_offset", "deleted_at", "error")

    assert rows == [(100, None, "no broker")]


def test_topic_made_again_starts_from_scratch(spark: SparkSession) -> None:
    stored = KNOWN | {"deleted_at": at(-5), "arrival_rate": 9.0, "samples": [(NOW_MS - 10_000, 100)]}

    rows = picked(topics(spark, [stored], [observed(end=200)]), "deleted_at", "arrival_rate", "samples")

    assert [(deleted, rate, [tuple(s) for s in ring]) for deleted, rate, ring in rows] == [
        (None, None, [(NOW_MS, 200)])
    ]


@pytest.mark.parametrize(
    ("now", "settings"),
    [
        ([observed(end=None, error="leader not available")], TOPICS),
        ([], replace(TOPICS, listing_error="no broker")),
        ([], replace(TOPICS, remaining={"t": 3})),
        ([], TOPICS),
    ],
    ids=["made again, no answer yet", "listing failed", "made again, not listed yet", "not asked for"],
)
def test_deleted_topic_stays_deleted_until_it_is_answered_for(
    spark: SparkSession, now: list[dict[str, Any]], settings: TopicSettings
) -> None:
    rows = picked(topics(spark, [KNOWN | {"deleted_at": at(-5)}], now, settings), "deleted_at")

    assert rows == [(at(-5).replace(tzinfo=None),)]


def lags(
    spark: SparkSession,
    stored: list[dict[str, Any]],
    logs: list[dict[str, Any]],
    *,
    batch: tuple[dict[str, Any], ...] = (),
    groups: tuple[dict[str, Any], ...] = (),
    reread: tuple[int, ...] = (),
    settings: LagSettings = LAGS,
) -> DataFrame:
    folded = fold_commits(
        stored_lag(spark, *stored),
        newest_commits(decoded(spark, *batch)),
        assigned_partitions(stored_groups(spark, *groups)),
        reread=reread,
        behind=settings.behind,
    )
    return measure_lag(folded, stored_topics(spark, *logs), settings)


COMMITTED = {"committed_offset": 40, "commit_position": 7, "commit_timestamp": at(-20)}


def test_lag_is_log_end_minus_committed_offset(spark: SparkSession) -> None:
    assert picked(lags(spark, [COMMITTED], [KNOWN]), "lag", "raw_lag", "log_end_offset") == [(60, 60, 100)]


def test_lag_of_a_commit_below_log_start_counts_what_is_left(spark: SparkSession) -> None:
    rows = picked(lags(spark, [COMMITTED], [KNOWN | {"log_start_offset": 70}]), "lag", "raw_lag", "status")

    assert rows == [(30, 60, "EXPIRED")]


def test_commit_beyond_log_end_has_no_negative_lag(spark: SparkSession) -> None:
    rows = picked(lags(spark, [COMMITTED], [KNOWN | {"log_end_offset": 30}]), "lag", "raw_lag", "lag_seconds")

    assert rows == [(0, -10, 0.0)]


def test_unknown_log_end_gives_null_and_not_zero(spark: SparkSession) -> None:
    unknown = {"log_end_offset": None, "isolation": "read_uncommitted"}

    assert picked(lags(spark, [COMMITTED], [unknown]), "lag", "raw_lag", "lag_seconds", "status") == [
        (None, None, None, "UNKNOWN")
    ]


def test_deleted_topic_has_no_lag_and_says_so(spark: SparkSession) -> None:
    rows = picked(
        lags(spark, [COMMITTED], [KNOWN | {"deleted_at": at(-3)}]), "lag", "log_end_offset", "status"
    )

    assert rows == [(None, None, "DELETED")]


def test_topic_that_no_broker_has_shown_is_unknown_and_not_deleted(spark: SparkSession) -> None:
    assert picked(lags(spark, [COMMITTED], []), "lag", "log_end_offset", "status") == [
        (None, None, "UNKNOWN")
    ]


def test_owner_and_generation_stand_beside_the_commit(spark: SparkSession) -> None:
    owner = member("m", client_id="c", client_host="/h", group_instance_id="i", assigned={"t": [0]})

    rows = picked(
        lags(spark, [COMMITTED], [KNOWN], groups=({"generation": 6, "members": [owner]},)),
        *("assigned", "member_id", "group_instance_id", "client_id", "client_host", "generation"),
    )

    assert rows == [(True, "m", "i", "c", "/h", 6)]


def test_claims_on_partitions_that_do_not_exist_have_no_row(spark: SparkSession) -> None:
    owner = member("m", assigned={"t": [-1, 0, 2**31 - 1], "nowhere": [0]})

    rows = picked(lags(spark, [], [KNOWN], groups=({"members": [owner]},)), "topic", "partition", "status")

    assert rows == [("t", 0, "NOT_COMMITTED")]


def test_rows_of_an_unread_offsets_partition_are_provisional(spark: SparkSession) -> None:
    other = COMMITTED | {"partition": 1, "offsets_partition": 4}
    settings = replace(LAGS, behind=(4,))

    rows = picked(
        lags(spark, [COMMITTED, other], [KNOWN, KNOWN | {"partition": 1}], settings=settings),
        "partition",
        "provisional",
    )

    assert rows == [(0, False), (1, True)]


def test_commits_move_the_drain_rate_by_the_time_between_two_batches(spark: SparkSession) -> None:
    new = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}

    rows = lags(spark, [COMMITTED], [KNOWN], batch=(new,))

    assert picked(rows, "drain_rate", "committed_offset") == [(5.0, 90)]
    assert [tuple(c) for c in rows.select("recent_commits").collect()[0][0]] == [(90, NOW_MS - 500, 10)]


NEW = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}


def test_commits_that_were_read_late_do_not_move_the_drain_rate(spark: SparkSession) -> None:
    # They came in between two batches, and were made in hours.
    late = COMMITTED | {"provisional": True, "drain_rate": 2.0}

    rows = lags(spark, [late], [KNOWN], batch=(NEW,))

    assert picked(rows, "committed_offset", "drain_rate") == [(90, 2.0)]


def test_commits_that_are_read_again_do_not_move_the_drain_rate_and_begin_a_new_window(
    spark: SparkSession,
) -> None:
    known = COMMITTED | {
        "drain_rate": 2.0,
        "recent_commits": [(30, NOW_MS - 90_000, 5), (40, NOW_MS - 20_000, 6)],
    }

    rows = lags(spark, [known], [KNOWN], batch=(NEW,), reread=(3,))

    assert picked(rows, "committed_offset", "drain_rate") == [(90, 2.0)]
    assert [tuple(c) for c in rows.select("recent_commits").collect()[0][0]] == [(90, NOW_MS - 500, 10)]


def test_partition_read_again_without_a_commit_keeps_its_window(spark: SparkSession) -> None:
    known = COMMITTED | {"recent_commits": [(40, NOW_MS - 20_000, 6)]}

    rows = lags(spark, [known], [KNOWN], reread=(3,), settings=replace(LAGS, behind=(3,)))

    assert [tuple(c) for c in rows.select("recent_commits").collect()[0][0]] == [(40, NOW_MS - 20_000, 6)]


def test_lag_of_a_stopped_group_goes_on_growing(spark: SparkSession) -> None:
    before, after = (
        picked(lags(spark, [COMMITTED], [KNOWN | {"log_end_offset": end}]), "lag")[0][0] for end in (100, 160)
    )

    assert (before, after) == (60, 120)


def turns(spark: SparkSession, history_at: float | None, history_hash: int | None) -> bool:
    stored = COMMITTED | {
        "history_at": None if history_at is None else at(history_at),
        "history_hash": history_hash,
    }
    rows = picked(lags(spark, [stored], [KNOWN]), "history_at")
    return rows == [(at(0).replace(tzinfo=None),)]


def test_history_is_due_when_new_when_changed_after_the_interval_and_at_the_latest_after_the_gap(
    spark: SparkSession,
) -> None:
    says = int(picked(lags(spark, [COMMITTED], [KNOWN]), "history_hash")[0][0])

    assert turns(spark, None, None)
    assert not turns(spark, -59, says + 1)
    assert turns(spark, -60, says + 1)
    assert not turns(spark, -899, says)
    assert turns(spark, -900, says)


def test_rows_carry_the_number_and_the_clock_of_the_batch(spark: SparkSession) -> None:
    rows = picked(topics(spark, [KNOWN], [observed(end=150)]), "updated_at", "batch_id")

    assert rows == [(at(0).replace(tzinfo=None), 7)]
