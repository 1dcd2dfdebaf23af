"""A commit is compared with the log of the topic it was made in, and with no other of that name."""

from typing import Any

import pyarrow as pa
import pytest

from tests.support.job.folded import LAGS, measured_lags
from tests.support.job.frames import NOW_MS, at, member, shown

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


def lags(stored: list[Row], topic: Row, batch: tuple[Row, ...] = (), *groups: Row) -> pa.Table:
    return measured_lags(stored, [topic], LAGS, batch=batch, groups=groups)


def test_commit_of_a_topic_that_another_has_replaced_has_no_lag() -> None:
    rows = lags([held("A")], log("B"))

    assert shown(rows, *SHOWN) == [UNKNOWN]
    assert shown(rows, "committed_offset", "commit_topic_id") == [(40, "A")]


def test_commit_of_a_topic_that_the_brokers_have_not_named_yet_has_no_lag() -> None:
    rows = lags([held("A")], log("A", error="broker 2 does not answer"), (new("B"),))

    assert shown(rows, *SHOWN) == [UNKNOWN]
    assert shown(rows, "committed_offset", "commit_topic_id") == [(90, "B")]


@pytest.mark.parametrize(("of_commit", "of_topic"), [("A", "A"), (None, "B"), ("A", None), (None, None)])
def test_same_id_or_none_at_all_leaves_the_lag(of_commit: str | None, of_topic: str | None) -> None:
    rows = lags([held(of_commit)], log(of_topic))

    assert shown(rows, "lag", "status") == [(60, "OK")]


def test_commit_without_an_id_is_of_the_topic_that_was_there_after_it() -> None:
    known = lags([held(None)], log("A"))
    first = lags([], log("A"), (new(None),))

    assert shown(known, "commit_topic_id") == shown(first, "commit_topic_id") == [("A",)]


@pytest.mark.parametrize(
    "doubt",
    [{"error": "no answer"}, {"topic_id_at": at(-30)}],
    ids=["offsets not answered", "id not answered"],
)
def test_old_id_says_nothing_of_a_commit_without_one(doubt: Row) -> None:
    rows = lags([], log("A", **doubt), (new(None),))

    assert shown(rows, "lag", "commit_topic_id") == [(10, None)]


def test_commit_without_an_id_is_doubted_for_one_batch_when_the_topic_has_changed() -> None:
    rows = lags([held("A")], log("B"), (new(None),))
    next_batch = lags([held("B", committed_offset=90)], log("B"))

    assert shown(rows, *SHOWN, "commit_topic_id") == [(*UNKNOWN, "B")]
    assert shown(next_batch, "lag") == [(10,)]


def test_commit_of_another_topic_begins_a_new_window_and_is_no_speed() -> None:
    before = held("A", recent_commits=[(30, NOW_MS - 90_000, 5), (40, NOW_MS - 20_000, 6)], drain_rate=2.0)

    rows = lags([before], log("B"), (new("B", offset=50),))

    assert shown(rows, "lag", "drain_rate", "status") == [(50, 2.0, "OK")]
    assert shown(rows, "recent_commits") == [([(50, NOW_MS - 500, None)],)]


def test_tombstone_leaves_an_assigned_partition_without_a_topic_id() -> None:
    owned = {"members": [member("m", assigned={"t": [0]})]}

    rows = lags([held("A")], log("B"), ({"row_kind": "tombstone", "position": 8},), owned)

    assert shown(rows, "committed_offset", "commit_topic_id", "log_end_offset", "status") == [
        (None, None, 100, "NOT_COMMITTED")
    ]


def test_commit_of_a_deleted_topic_is_deleted() -> None:
    rows = lags([held("A")], log("B", deleted_at=at(-3)))

    assert shown(rows, "lag", "status") == [(None, "DELETED")]
