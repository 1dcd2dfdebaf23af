import numpy as np

from pipeline.lag.commits import window as commit_window
from pipeline.lag.commits.window import WINDOW_SIZE, CommitWindow, append_commit
from tests.support.job.measures import Commit, ints, no_commits, window_rows, windows


def append(
    window: CommitWindow, *commits: tuple[int | None, int, int | None], is_new: bool = True
) -> CommitWindow:
    committed, at, lag = zip(*commits, strict=True)
    return append_commit(
        window,
        committed=ints(committed),
        commit_timestamp_ms=ints(at),
        lag=ints(lag),
        is_new=np.full(len(commits), is_new),
    )


def test_new_commit_is_added_with_its_lag() -> None:
    window = append(windows([], [(5, 1000, 3)]), (7, 2000, None), (6, 2000, 4))

    assert window_rows(window) == [[(7, 2000, None)], [(5, 1000, 3), (6, 2000, 4)]]


def test_commit_seen_before_is_not_added_again_and_has_the_lag_that_is_known_now() -> None:
    seen: list[list[Commit]] = [[(5, 1000, 3)], [(4, 500, 8), (5, 1000, None)], [(5, 1000, 3)], []]

    window = append(
        windows(*seen), (5, 1000, 2), (5, 1000, 9), (5, 1000, None), (None, 1000, None), is_new=False
    )

    assert window_rows(window) == [[(5, 1000, 2)], [(4, 500, 8), (5, 1000, 9)], [(5, 1000, 3)], []]


def test_lags_of_the_time_when_commits_were_seen_are_dropped_unless_there_was_none() -> None:
    commits: list[Commit] = [(5, 1000, 0), (6, 2000, 3), (7, 3000, None)]

    window = commit_window.without_raw_lag(windows(commits, commits), np.array([True, False]))

    assert window_rows(window) == [[(5, 1000, 0), (6, 2000, None), (7, 3000, None)], commits]


def test_new_commit_of_the_same_offset_is_added() -> None:
    window = append(windows([(5, 1000, 3)]), (5, 2000, 9))

    assert window_rows(window) == [[(5, 1000, 3), (5, 2000, 9)]]


def test_full_window_loses_its_oldest_commit() -> None:
    full: list[Commit] = [
        (number, 1000 * number, None if number == 3 else number) for number in range(WINDOW_SIZE)
    ]

    window = append(windows(full), (99, 99_000, 1))

    assert window_rows(window) == [[*full[1:], (99, 99_000, 1)]]


def test_full_window_without_a_new_commit_stays() -> None:
    full: list[Commit] = [(number, 1000 * number, number) for number in range(WINDOW_SIZE)]

    window = append(windows(full), full[-1], is_new=False)

    assert window_rows(window) == [full]


def test_deleted_offset_empties_the_window() -> None:
    window = append(windows([(5, 1000, None), (9, 2000, 3)]), (None, 3000, None))

    assert window_rows(window) == [[]]
    assert (window.lag == no_commits(1).lag).all()


def test_empty_windows_take_their_first_commit() -> None:
    window = append(no_commits(1), (5, 1000, 3))

    assert window_rows(window) == [[(5, 1000, 3)]]
