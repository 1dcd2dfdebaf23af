"""How far behind a group is at its commits, measured from outside."""

from tests.benchmarks.follow_ruler import Measured


def test_lag_between_two_commits_is_left_out_where_members_commit_seldom() -> None:
    """The first partition is committed at second 2 and at 32, the second never."""
    measured, least = Measured(), []
    for second in range(40):
        since = second - (32 if second >= 32 else 2)
        least.append(measured.least(second, [10 * since if since >= 0 else 20, 5 * second], window_s=29))

    assert [first for first, _ in least[2:]] == [0] * 38
    assert least[39][1] == 5 * 10


def test_lag_is_what_it_is_now_where_members_commit_every_second() -> None:
    measured = Measured()

    assert [measured.least(s, [lag], window_s=0) for s, lag in ((0.0, 7), (0.5, 9), (1.0, 3))] == [
        [7],
        [9],
        [3],
    ]
