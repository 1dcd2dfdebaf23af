"""What is measured of folded rows."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lag.settings import LagSettings, TopicSettings
from tests.support.job.folded import LAGS, measured_lags, measured_topics
from tests.support.job.frames import NOW_MS, at, member, shown

TOPICS = TopicSettings(at_ms=NOW_MS, batch_id=7, listing_error=None, half_life_ms=60_000)


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
    stored: list[dict[str, Any]],
    now: list[dict[str, Any]],
    settings: TopicSettings = TOPICS,
) -> pa.Table:
    return measured_topics(stored, now, settings)


KNOWN = {
    "log_start_offset": 0,
    "log_end_offset": 100,
    "isolation": "read_uncommitted",
    "observed_at": at(-10),
}


def test_answer_replaces_what_was_known_and_gives_a_rate() -> None:
    rows = shown(
        topics([KNOWN], [observed(end=150)]), "log_end_offset", "observed_at", "arrival_rate", "error"
    )

    assert rows == [(150, at(0), 5.0, None)]


def test_replicas_are_those_of_now_or_unknown() -> None:
    kept = {"leader_broker": 1, "preferred_leader": 1, "replicas": 3, "in_sync_replicas": 3}
    now = {"leader_broker": None, "preferred_leader": 1, "replicas": 3, "in_sync_replicas": 2}
    silent = observed(end=None, error="timed out")

    assert shown(topics([KNOWN | kept], [observed(end=150) | now]), *kept) == [(None, 1, 3, 2)]
    assert shown(topics([KNOWN | kept], [silent | now]), *kept) == [(None, 1, 3, 2)]
    assert shown(topics([KNOWN | kept], []), *kept) == [(None, None, None, None)]


def test_no_answer_keeps_the_value_its_age_and_says_why() -> None:
    rows = shown(
        topics([KNOWN], [observed(end=None, error="timed out")]),
        "log_end_offset",
        "observed_at",
        "error",
    )

    assert rows == [(100, at(-10), "timed out")]


def test_no_answer_keeps_how_far_the_log_could_be_read() -> None:
    """Otherwise what a transaction holds back would be a backlog as soon as the leader falls silent."""
    held = KNOWN | {"readable_offset": 40, "last_stable_offset": 40}

    silent = topics([held], [observed(end=None, error="timed out")])

    assert shown(silent, "readable_offset", "last_stable_offset") == [(40, None)]


def test_topic_that_is_gone_when_asked_for_by_name_is_deleted_since_then() -> None:
    gone = replace(TOPICS, remaining={"t": 0})

    first = shown(topics([KNOWN], [], gone), "deleted_at")
    later = shown(topics([KNOWN | {"deleted_at": at(-5)}], []), "deleted_at")

    assert (first, later) == ([(at(0),)], [(at(-5),)])


def test_topic_that_is_only_missing_from_the_listing_stays_and_says_why() -> None:
    refused = replace(TOPICS, unconfirmed={"t": "no right to describe it"})

    rows = [
        shown(topics([KNOWN], [], how), "log_end_offset", "deleted_at", "error") for how in (refused, TOPICS)
    ]

    assert rows == [
        [(100, None, "no right to describe it")],
        [(100, None, "missing from the brokers' list, although the brokers still know it by name")],
    ]


def test_only_partitions_that_the_topic_no_longer_has_are_deleted() -> None:
    stored = [KNOWN | {"partition": number} for number in range(3)]

    rows = shown(
        topics(stored, [observed(end=150)], replace(TOPICS, remaining={"t": 2})),
        "partition",
        "deleted_at",
    )

    assert rows == [(0, None), (1, None), (2, at(0))]


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
    stored_id: str | None,
    observed_id: str | None,
    rate: float | None,
    kept_id: str | None,
) -> None:
    stored = KNOWN | {"topic_id": stored_id, "arrival_rate": 5.0, "samples": [(NOW_MS - 10_000, 100)]}

    (row,) = shown(
        topics([stored], [observed(end=150) | {"topic_id": observed_id}]),
        "arrival_rate",
        "topic_id",
        "samples",
    )

    assert row[:2] == (rate, kept_id)
    assert len(row[2]) == (1 if rate is None else 2)


def test_id_without_an_answer_leaves_the_old_topic() -> None:
    unanswered = observed(end=None, error="leader not available") | {"topic_id": "B"}

    rows = shown(topics([KNOWN | {"topic_id": "A"}], [unanswered]), "log_end_offset", "topic_id")

    assert rows == [(100, "A")]


def test_id_has_an_age_of_its_own() -> None:
    stored = KNOWN | {"topic_id": "A", "topic_id_at": at(-10)}

    without, named = (
        shown(topics([stored], [observed(end=150) | {"topic_id": given}]), "observed_at", "topic_id_at")
        for given in (None, "A")
    )

    now, before = at(0), at(-10)
    assert (without, named) == ([(now, before)], [(now, now)])


def test_unanswered_questions_do_not_move_the_rate() -> None:
    stored = KNOWN | {"arrival_rate": 5.0, "samples": [(NOW_MS - 10_000, 100)]}
    away = topics([stored], [observed(end=None, error="broker 2 did not answer within 10 s")])

    again = topics(away.to_pylist(), [observed(end=150)], replace(TOPICS, at_ms=NOW_MS))

    # 50 records in the ten seconds since the last answer, whatever was asked in between.
    assert shown(again, "log_end_offset", "arrival_rate", "error") == [(150, 5.0, None)]
    assert shown(again, "samples") == [([(NOW_MS - 10_000, 100), (NOW_MS, 150)],)]


def test_failed_listing_deletes_nothing() -> None:
    failed = replace(TOPICS, listing_error="no broker")

    rows = shown(topics([KNOWN], [], failed), "log_end_offset", "deleted_at", "error")

    assert rows == [(100, None, "no broker")]


def test_topic_made_again_starts_from_scratch() -> None:
    stored = KNOWN | {"deleted_at": at(-5), "arrival_rate": 9.0, "samples": [(NOW_MS - 10_000, 100)]}

    rows = shown(topics([stored], [observed(end=200)]), "deleted_at", "arrival_rate", "samples")

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
    now: list[dict[str, Any]], settings: TopicSettings
) -> None:
    rows = shown(topics([KNOWN | {"deleted_at": at(-5)}], now, settings), "deleted_at")

    assert rows == [(at(-5),)]


def lags(
    stored: list[dict[str, Any]],
    logs: list[dict[str, Any]],
    *,
    batch: tuple[dict[str, Any], ...] = (),
    groups: tuple[dict[str, Any], ...] = (),
    reread: tuple[int, ...] = (),
    settings: LagSettings = LAGS,
) -> pa.Table:
    return measured_lags(stored, logs, settings, batch=batch, groups=groups, reread=reread)


COMMITTED = {"committed_offset": 40, "commit_position": 7, "commit_timestamp": at(-20)}


def test_lag_is_log_end_minus_committed_offset() -> None:
    assert shown(lags([COMMITTED], [KNOWN]), "lag", "raw_lag", "log_end_offset") == [(60, 60, 100)]


def test_lag_of_a_commit_below_log_start_counts_what_is_left() -> None:
    rows = shown(lags([COMMITTED], [KNOWN | {"log_start_offset": 70}]), "lag", "raw_lag", "status")

    assert rows == [(30, 60, "EXPIRED")]


def test_commit_beyond_log_end_has_no_negative_lag() -> None:
    rows = shown(lags([COMMITTED], [KNOWN | {"log_end_offset": 30}]), "lag", "raw_lag", "lag_seconds")

    assert rows == [(0, -10, 0.0)]


def test_unknown_log_end_gives_null_and_not_zero() -> None:
    unknown = {"log_end_offset": None, "isolation": "read_uncommitted"}

    assert shown(lags([COMMITTED], [unknown]), "lag", "raw_lag", "lag_seconds", "status") == [
        (None, None, None, "UNKNOWN")
    ]


def test_deleted_topic_has_no_lag_and_says_so() -> None:
    rows = shown(lags([COMMITTED], [KNOWN | {"deleted_at": at(-3)}]), "lag", "log_end_offset", "status")

    assert rows == [(None, None, "DELETED")]


def test_topic_that_no_broker_has_shown_is_unknown_and_not_deleted() -> None:
    assert shown(lags([COMMITTED], []), "lag", "log_end_offset", "status") == [(None, None, "UNKNOWN")]


def test_owner_and_generation_stand_beside_the_commit() -> None:
    owner = member("m", client_id="c", client_host="/h", group_instance_id="i", assigned={"t": [0]})

    rows = shown(
        lags([COMMITTED], [KNOWN], groups=({"generation": 6, "members": [owner]},)),
        *("assigned", "member_id", "group_instance_id", "client_id", "client_host", "generation"),
    )

    assert rows == [(True, "m", "i", "c", "/h", 6)]


def test_claims_on_partitions_that_do_not_exist_have_no_row() -> None:
    owner = member("m", assigned={"t": [-1, 0, 2**31 - 1], "nowhere": [0]})

    rows = shown(lags([], [KNOWN], groups=({"members": [owner]},)), "topic", "partition", "status")

    assert rows == [("t", 0, "NOT_COMMITTED")]


def test_rows_of_an_unread_offsets_partition_are_provisional() -> None:
    other = COMMITTED | {"partition": 1, "offsets_partition": 4}
    settings = replace(LAGS, behind=(4,))

    rows = shown(
        lags([COMMITTED, other], [KNOWN, KNOWN | {"partition": 1}], settings=settings),
        "partition",
        "provisional",
    )

    assert rows == [(0, False), (1, True)]


def test_commits_move_the_drain_rate_by_the_time_between_two_batches() -> None:
    new = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}

    rows = lags([COMMITTED], [KNOWN], batch=(new,))

    assert shown(rows, "drain_rate", "committed_offset") == [(5.0, 90)]
    assert shown(rows, "recent_commits") == [([(90, NOW_MS - 500, None)],)]


NEW = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}


def test_drain_rate_stays_while_the_clock_of_the_batches_stands_still() -> None:
    # Each batch is 1 ms after the one before it, whatever time has passed.
    before = COMMITTED | {"updated_at": at(-0.001), "drain_rate": 2.0}

    rows = lags([before], [KNOWN], batch=(NEW,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]


def test_commits_that_were_read_late_do_not_move_the_drain_rate() -> None:
    # They came in between two batches, and were made in hours.
    late = COMMITTED | {"provisional": True, "drain_rate": 2.0}

    rows = lags([late], [KNOWN], batch=(NEW,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]


def test_commits_that_are_read_again_do_not_move_the_drain_rate_and_begin_a_new_window() -> None:
    known = COMMITTED | {
        "drain_rate": 2.0,
        "recent_commits": [(30, NOW_MS - 90_000, 5), (40, NOW_MS - 20_000, 6)],
    }

    rows = lags([known], [KNOWN], batch=(NEW,), reread=(3,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]
    assert shown(rows, "recent_commits") == [([(90, NOW_MS - 500, None)],)]


def test_partition_read_again_without_a_commit_keeps_its_window() -> None:
    known = COMMITTED | {"recent_commits": [(40, NOW_MS - 20_000, 6)]}

    rows = lags([known], [KNOWN], reread=(3,), settings=replace(LAGS, behind=(3,)))

    assert shown(rows, "recent_commits") == [([(40, NOW_MS - 20_000, 6)],)]


def test_lag_of_a_stopped_group_goes_on_growing() -> None:
    before, after = (
        shown(lags([COMMITTED], [KNOWN | {"log_end_offset": end}]), "lag")[0][0] for end in (100, 160)
    )

    assert (before, after) == (60, 120)


def turns(history_at: float | None, history_hash: int | None) -> bool:
    stored = COMMITTED | {
        "history_at": None if history_at is None else at(history_at),
        "history_hash": history_hash,
    }
    rows = shown(lags([stored], [KNOWN]), "history_at")
    return rows == [(at(0),)]


def test_history_is_due_when_new_when_changed_after_the_interval_and_at_the_latest_after_the_gap() -> None:
    says = int(shown(lags([COMMITTED], [KNOWN]), "history_hash")[0][0])

    assert turns(None, None)
    assert not turns(-59, says + 1)
    assert turns(-60, says + 1)
    assert not turns(-899, says)
    assert turns(-900, says)


def test_rows_carry_the_number_and_the_clock_of_the_batch() -> None:
    rows = shown(topics([KNOWN], [observed(end=150)]), "updated_at", "batch_id")

    assert rows == [(at(0), 7)]


def test_lag_that_grew_since_the_reference_is_growing() -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)}
    answered = KNOWN | {"observed_at": at(0)}

    assert shown(lags([before], [answered]), "lag", "trend", "trend_lag", "trend_at") == [
        (60, "growing", 10, at(-90))
    ]
    assert shown(lags([before | {"trend": "falling"}], [KNOWN]), "trend") == [("growing",)]


@pytest.mark.parametrize(
    "stored",
    [
        {"log_observed_at": at(-10)},
        {"trend_lag": None, "trend_at": None},
        {"trend_at": at(-20)},
        {"commit_topic_id": "another"},
    ],
    ids=["no new answer", "nothing before", "too young", "another topic"],
)
def test_trend_is_unknown_with_too_little_to_tell(stored: dict[str, Any]) -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)} | stored
    known = KNOWN | {"topic_id": "A", "topic_id_at": at(-10)}

    assert shown(lags([before], [known]), "trend") == [(None,)]


def test_provisional_row_has_no_trend_and_begins_anew() -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)}

    rows = lags([before], [KNOWN], settings=replace(LAGS, behind=(3,)))

    assert shown(rows, "provisional", "trend", "trend_lag", "trend_at") == [(True, None, None, None)]


def test_retention_is_what_the_age_of_the_next_record_leaves() -> None:
    log = KNOWN | {"samples": [(NOW_MS - 60_000, 40), (NOW_MS - 10_000, 100)]}
    known = replace(LAGS, retention_ms={"t": 3_600_000})

    assert shown(lags([COMMITTED], [log], settings=known), "lag_seconds", "retention_seconds") == [
        (60.0, 3540.0)
    ]
    assert shown(lags([COMMITTED], [log]), "retention_seconds") == [(None,)]
    assert shown(
        lags([COMMITTED | {"committed_offset": 100}], [log], settings=known), "retention_seconds"
    ) == [(None,)]


def test_records_that_were_deleted_unread_leave_no_time() -> None:
    rows = lags([COMMITTED], [KNOWN | {"log_start_offset": 70}])

    assert shown(rows, "status", "retention_seconds") == [("EXPIRED", 0.0)]
