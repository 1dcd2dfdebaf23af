"""Lag at the newest commit, as rows get it, keep it and lose it."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.lag.settings import LagSettings
from tests.support.job.folded import LAGS, measured_lags
from tests.support.job.frames import NOW_MS, at, shown

Row = dict[str, Any]
LOG: Row = {
    "log_start_offset": 0,
    "log_end_offset": 100,
    "isolation": "read_uncommitted",
    "observed_at": at(0),
    "samples": [(NOW_MS - 40_000, 0), (NOW_MS - 30_000, 70), (NOW_MS, 100)],
}
HELD: Row = {
    "committed_offset": 60,
    "commit_position": 7,
    "commit_timestamp": at(-20),
    "log_observed_at": at(-9),
    "lag": 35,
    "recent_commits": [(60, NOW_MS - 20_000, None)],
}
NEW: Row = {
    "row_kind": "commit",
    "position": 8,
    "committed_offset": 75,
    "commit_timestamp_ms": NOW_MS - 10_000,
}


def rows(
    held: list[Row], log: Row = LOG, *batch: Row, settings: LagSettings = LAGS, reread: tuple[int, ...] = ()
) -> list[tuple[Any, ...]]:
    measured = measured_lags(held, [log], settings, batch=batch, reread=reread)
    return shown(measured, "lag", "lag_at_commit", "recent_commits")


def test_new_commit_has_the_lag_of_its_time_in_the_row_and_in_the_window() -> None:
    # Ten seconds ago the log ended at 90.
    assert rows([HELD], LOG, NEW) == [
        (25, 15, [(60, NOW_MS - 20_000, None), (75, NOW_MS - 10_000, 15)]),
    ]


def test_it_stays_as_long_as_the_commit_however_the_log_grows() -> None:
    known = HELD | {"lag_at_commit": 3, "recent_commits": [(60, NOW_MS - 20_000, 3)]}

    assert rows([known]) == [(40, 3, [(60, NOW_MS - 20_000, 3)])]


def test_it_is_never_more_than_the_lag_when_unread_records_are_deleted() -> None:
    known = HELD | {"lag_at_commit": 39, "recent_commits": [(60, NOW_MS - 20_000, 39)]}

    assert [row[:2] for row in rows([known], LOG | {"log_start_offset": 80})] == [(20, 20)]


def test_new_commit_of_the_same_offset_is_measured_anew() -> None:
    known = HELD | {"lag_at_commit": 3}

    assert [row[:2] for row in rows([known], LOG, NEW | {"committed_offset": 60})] == [(40, 30)]


@pytest.mark.parametrize(
    "before",
    [{"log_observed_at": at(-30)}, {"provisional": True}, {"lag": None}],
    ids=["log end not answered", "provisional", "lag unknown"],
)
def test_what_could_not_be_told_is_told_when_samples_are_there(before: Row) -> None:
    assert rows([HELD | before]) == [(40, 20, [(60, NOW_MS - 20_000, 20)])]


def test_commit_without_a_bracket_when_it_was_seen_stays_unknown() -> None:
    assert rows([HELD]) == [(40, None, [(60, NOW_MS - 20_000, None)])]


@pytest.mark.parametrize("before", [{"log_observed_at": at(-30)}, {"provisional": True}])
def test_commit_that_was_ahead_of_its_batch_stays_unknown_when_its_time_has_come(before: Row) -> None:
    # The stored row is ten seconds old.
    ahead = HELD | {"commit_timestamp": at(-4), "recent_commits": [(60, NOW_MS - 4_000, None)]}

    assert [row[1] for row in rows([ahead | before])] == [None]


def test_provisional_row_has_none_and_its_window_keeps_what_it_has() -> None:
    known = HELD | {"lag_at_commit": 3, "recent_commits": [(60, NOW_MS - 20_000, 3)]}
    behind = replace(LAGS, behind=(3,))

    assert rows([known], settings=behind) == [(40, None, [(60, NOW_MS - 20_000, 3)])]
    assert rows([HELD], LOG, NEW, settings=behind)[0][1] is None


def test_commit_that_is_read_again_is_measured_like_a_new_one() -> None:
    known = HELD | {"lag_at_commit": 3, "recent_commits": [(60, NOW_MS - 20_000, 3)]}
    again = NEW | {"position": 5, "committed_offset": 60, "commit_timestamp_ms": NOW_MS - 20_000}

    assert rows([known], LOG, again, reread=(3,)) == [(40, 20, [(60, NOW_MS - 20_000, 20)])]
    old = again | {"commit_timestamp_ms": NOW_MS - 3_600_000}
    assert rows([known], LOG, old, reread=(3,)) == [(40, None, [(60, NOW_MS - 3_600_000, None)])]


def test_commit_of_another_topic_of_the_name_has_none() -> None:
    known = HELD | {"lag_at_commit": 3, "commit_topic_id": "A", "recent_commits": [(60, NOW_MS - 20_000, 3)]}
    other = LOG | {"topic_id": "B", "topic_id_at": at(0)}

    assert [row[:2] for row in rows([known], other)] == [(None, None)]
    # The first commit in the new topic is measured by samples of the new topic.
    assert rows([known], other, NEW | {"topic_id": "B"}) == [(25, 15, [(75, NOW_MS - 10_000, 15)])]


def test_deleted_topic_has_none() -> None:
    assert [row[:2] for row in rows([HELD | {"lag_at_commit": 3}], LOG | {"deleted_at": at(-1)})] == [
        (None, None)
    ]


def test_commit_beyond_the_end_of_a_log_that_was_cut_has_none() -> None:
    cut = LOG | {"log_end_offset": 50, "samples": [(NOW_MS, 50)]}

    assert [row[:2] for row in rows([HELD | {"lag_at_commit": 3}], cut)] == [(None, None)]
    old = cut | {"error": "broker 1 does not answer"}
    assert [row[:2] for row in rows([HELD | {"lag_at_commit": 3}], old)] == [(0, None)]


def test_row_of_an_earlier_version_is_measured_and_its_window_keeps_no_lag_of_another_time() -> None:
    window = [(50, NOW_MS - 50_000, 0), (55, NOW_MS - 40_000, 12), (60, NOW_MS - 20_000, 35)]

    assert rows([HELD | {"recent_commits": window}]) == [
        (40, 20, [(50, NOW_MS - 50_000, 0), (55, NOW_MS - 40_000, None), (60, NOW_MS - 20_000, 20)])
    ]


def test_pace_of_the_commits_stands_beside_them() -> None:
    held = HELD | {
        "lag_at_commit": 4,
        "commit_timestamp": at(-10),
        "recent_commits": [
            (offset, NOW_MS - ago_ms, lag)
            for offset, ago_ms, lag in ((0, 40_000, 8), (20, 30_000, 4), (40, 20_000, 6), (60, 10_000, 4))
        ],
    }
    names = ("commit_interval_seconds", "commit_rate", "commit_span_seconds", "least_lag_at_commit")

    assert shown(measured_lags([held], [LOG], LAGS), *names) == [(10.0, 2.0, 20.0, 4)]
    assert shown(measured_lags([HELD], [LOG], LAGS), *names) == [(None, None, None, None)]
