"""What is measured of folded rows of topics."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lag.settings import TopicSettings
from tests.support.job.folded import measured_topics
from tests.support.job.frames import NOW_MS, at, shown

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


def test_rows_carry_the_number_and_the_clock_of_the_batch() -> None:
    rows = shown(topics([KNOWN], [observed(end=150)]), "updated_at", "batch_id")

    assert rows == [(at(0), 7)]
