from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.lag.status import MIN_SPAN_MS, STATUS_NAMES, Offsets, Status, judge
from tests.support.job.measures import Commit, Sample, ints, rings, windows

S = 1000
ADVANCING = [(1000, 100 * S), (2000, 200 * S), (3000, 300 * S), (4000, 400 * S), (5000, 500 * S)]
STANDING = [(1000, at) for _, at in ADVANCING]


def commits(offsets: list[tuple[int, int]], *lags: int | None) -> list[Commit]:
    return [(offset, at, lag) for (offset, at), lag in zip(offsets, lags, strict=True)]


def status(
    window: Sequence[Commit],
    *,
    log_end: int | None,
    now_s: int = 600,
    ring: list[Sample] | None = None,
    log_start: int | None = 0,
    log_start_before: int | None = None,
    topic_exists: bool = True,
    allowed_lag: int = 0,
) -> str:
    codes = judge(
        windows(window),
        rings(ring or []),
        Offsets(
            committed=ints([window[-1][0] if window else None]),
            log_start=ints([log_start]),
            log_start_before=ints([log_start if log_start_before is None else log_start_before]),
            log_end=ints([log_end]),
        ),
        topic_exists=np.array([topic_exists]),
        now_ms=now_s * S,
        allowed_lag=allowed_lag,
    )
    return STATUS_NAMES[int(codes[0])]


GROWING = commits(ADVANCING, 50, 100, 150, 200, 250)
ONCE_CAUGHT_UP = commits(ADVANCING, 0, 50, 100, 150, 200)


@pytest.mark.parametrize(
    ("window", "log_end", "now_s", "expected"),
    [
        pytest.param(ONCE_CAUGHT_UP, 5200, 600, "OK", id="caught up once in the window"),
        pytest.param(ONCE_CAUGHT_UP, 5200, 900, "OK", id="silent exactly as long as the window"),
        pytest.param(ONCE_CAUGHT_UP, 5200, 1000, "STOP", id="silent longer, though once caught up"),
        pytest.param(GROWING, 5250, 1000, "STOP", id="silent longer, lag growing"),
        pytest.param(
            commits(STANDING, 0, 50, 100, 150, 200), 1200, 600, "OK", id="standing, caught up at first"
        ),
        pytest.param(
            commits(STANDING, 100, 150, 200, 250, 300), 1300, 600, "STALL", id="standing, lag grows"
        ),
        pytest.param(
            commits(STANDING, 100, 100, 100, 100, 100), 1100, 600, "STALL", id="standing, lag constant"
        ),
        pytest.param(
            commits([*ADVANCING[:3], (2000, 400 * S), (4000, 500 * S)], 100, 150, 200, 1250, 300),
            4300,
            600,
            "REWIND",
            id="went back, though the lag fell after it",
        ),
        pytest.param(GROWING, 5000, 1000, "OK", id="no lag now"),
        pytest.param(GROWING, 5250, 600, "WARN", id="advancing, lag grows"),
        pytest.param(commits(ADVANCING, 50, 50, 50, 50, 50), 5050, 600, "WARN", id="advancing, lag constant"),
        pytest.param(commits(ADVANCING, 50, 100, 90, 200, 250), 5250, 600, "OK", id="lag fell once"),
        pytest.param(
            commits(ADVANCING, 0, None, 50, None, 100),
            5100,
            600,
            "OK",
            id="unknown lags do not hide a caught-up one",
        ),
        pytest.param(
            commits(ADVANCING, 100, None, 50, None, 70), 5100, 600, "OK", id="fall across an unknown lag"
        ),
        pytest.param(
            commits(ADVANCING, 50, None, 70, None, 90), 5100, 600, "WARN", id="growth across unknown lags"
        ),
    ],
)
def test_cases_of_burrow(window: list[Commit], log_end: int, now_s: int, expected: str) -> None:
    assert status(window, log_end=log_end, now_s=now_s) == expected


def test_idle_consumer_is_not_stopped_by_the_first_new_record() -> None:
    window = commits(ADVANCING, 0, 0, 0, 0, 0)
    ring = [(400 * S, 4999), (500 * S, 5000), (99_990 * S, 5000), (100_000 * S, 5001)]

    assert status(window, log_end=5001, now_s=100_000, ring=ring) == "OK"
    assert status(window, log_end=5001, now_s=100_390, ring=ring) == "OK"
    assert status(window, log_end=5001, now_s=100_391, ring=ring) == "STOP"


def test_lag_older_than_the_ring_does_not_put_off_stop() -> None:
    assert status(GROWING, log_end=5250, now_s=1000, ring=[(999 * S, 5250)]) == "STOP"


@pytest.mark.parametrize(("silent_ms", "expected"), [(MIN_SPAN_MS, "OK"), (MIN_SPAN_MS + S, "STOP")])
def test_one_commit_gets_the_session_timeout_before_stop(silent_ms: int, expected: str) -> None:
    assert status([(5, 100 * S, 3)], log_end=8, now_s=100 + silent_ms // S) == expected


def test_commit_clock_going_back_does_not_shorten_the_window() -> None:
    window = [(5, 400 * S, 3), (6, 100 * S, 3), (7, 300 * S, 2)]

    assert status(window, log_end=9, now_s=600) == "OK"
    assert status(window, log_end=9, now_s=601) == "STOP"


def test_rewind_gives_way_to_stop_when_commits_cease() -> None:
    window = [(5, 100 * S, 3), (2, 200 * S, 6)]

    assert status(window, log_end=8, now_s=250) == "REWIND"
    assert status(window, log_end=8, now_s=400) == "STOP"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param({"topic_exists": False, "log_end": None}, "DELETED", id="topic gone"),
        pytest.param({"window": [], "topic_exists": False}, "DELETED", id="topic gone, never committed"),
        pytest.param({"window": []}, "NOT_COMMITTED", id="never committed"),
        pytest.param({"window": [], "log_end": None}, "NOT_COMMITTED", id="never committed, log end unknown"),
        pytest.param({"log_end": None}, "UNKNOWN", id="log end unknown"),
        pytest.param({"log_end": None, "log_start": 6000}, "UNKNOWN", id="log end unknown, below log start"),
        pytest.param({"log_start": 5001}, "EXPIRED", id="below the log start"),
        pytest.param({"log_start": 5250}, "EXPIRED", id="below the log start, nothing left to read"),
        pytest.param({"log_start": 5000}, "WARN", id="at the log start"),
        pytest.param(
            {"log_start": 5200, "log_start_before": 5000}, "WARN", id="below a log start that has just risen"
        ),
        pytest.param(
            {"log_start": 5250, "log_start_before": 5000}, "OK", id="the same, nothing left to read"
        ),
        pytest.param({"log_start": None}, "WARN", id="log start unknown"),
        pytest.param({"log_end": 10}, "OK", id="commit beyond the log end"),
    ],
)
def test_facts_about_offsets_come_before_the_rules(overrides: dict[str, object], expected: str) -> None:
    case = {"window": GROWING, "log_end": 5250} | overrides

    assert status(**case) == expected  # type: ignore[arg-type] # a table of keyword arguments


@pytest.mark.parametrize(("allowed_lag", "expected"), [(0, "STOP"), (1, "OK")])
def test_transaction_marker_is_no_lag_when_allowed(allowed_lag: int, expected: str) -> None:
    window = commits(ADVANCING, 1, 1, 1, 1, 1)

    assert status(window, log_end=5001, now_s=9999, allowed_lag=allowed_lag) == expected


def test_allowed_lag_in_the_window_counts_as_caught_up() -> None:
    window = commits(ADVANCING, 1, 50, 100, 150, 200)

    assert status(window, log_end=5200) == "WARN"
    assert status(window, log_end=5200, allowed_lag=1) == "OK"


def test_stop_counts_from_the_first_record_beyond_the_allowed_lag() -> None:
    window = commits(ADVANCING, 1, 1, 1, 1, 1)
    ring = [(500 * S, 5000), (501 * S, 5001), (99_990 * S, 5001), (100_000 * S, 5005)]

    assert status(window, log_end=5005, now_s=100_000, ring=ring, allowed_lag=1) == "OK"


def test_partition_without_window_is_ok_for_lack_of_evidence() -> None:
    codes = judge(
        windows([]),
        rings([]),
        Offsets(
            committed=ints([5]),
            log_start=ints([0]),
            log_start_before=ints([0]),
            log_end=ints([9]),
        ),
        topic_exists=np.array([True]),
        now_ms=10**12,
        allowed_lag=0,
    )

    assert codes.tolist() == [Status.OK]


def test_names_are_the_words_for_the_codes() -> None:
    assert [STATUS_NAMES[status] for status in Status] == [status.name for status in Status]


@pytest.mark.parametrize("away_s", [60, 300, 3600])
def test_consumer_is_not_stopped_because_its_first_record_came_while_nobody_asked(away_s: int) -> None:
    back_s = 500 + away_s
    ring = [(400 * S, 5000), (500 * S, 5000), (back_s * S, 5001)]
    idle = commits(ADVANCING, 0, 0, 0, 0, 0)[-2:]

    assert status(idle, log_end=5001, now_s=back_s, ring=ring) == "OK"
    assert status(idle, log_end=5001, now_s=back_s + 101, ring=ring) == "STOP"
