"""Lag at commits of consumers whose truth is known, through the measures of many batches."""

from functools import cache

import pytest

from pipeline.lag.commits.at_commit import CLOCK_ERROR_MS
from tests.support.groups.commit_world import Consumer, Seen, lived

TRIGGERS_S = (10, 30)
INTERVALS_S = (5, 15, 30, 60, 90)
SKEWS_S = (-300, -120, -20, -3, 3, 120, 300)
SECONDS = 1_200

KEEPING_UP = tuple(
    Consumer(rate=rate, commit_every_s=every_s, first_commit_s=first_s)
    for every_s in INTERVALS_S
    for rate, first_s in ((3, 4), (170, 17))
)
SKEWED = tuple(
    Consumer(rate=50, commit_every_s=every_s, first_commit_s=7, skew_s=skew_s)
    for skew_s in SKEWS_S
    for every_s in (5, 60)
)
HUNG = tuple(
    Consumer(rate=50, commit_every_s=every_s, first_commit_s=7, hangs_at_s=200, commits_on=commits_on)
    for every_s in (5, 30, 60)
    for commits_on in (False, True)
)
SLOW = tuple(
    Consumer(rate=50, commit_every_s=every_s, first_commit_s=7, speed=0.5) for every_s in (5, 30, 60)
)
CUT = tuple(Consumer(rate=50, commit_every_s=every_s, first_commit_s=7, cut_at_s=300) for every_s in (5, 60))


@cache
def world(trigger_s: int) -> dict[Consumer, list[Seen]]:
    consumers = [*KEEPING_UP, *SKEWED, *HUNG, *SLOW, *CUT]
    return dict(zip(consumers, lived(consumers, trigger_s, SECONDS), strict=True))


@pytest.mark.parametrize("trigger_s", TRIGGERS_S)
@pytest.mark.parametrize("consumer", KEEPING_UP, ids=str)
def test_group_that_keeps_up_has_no_lag_at_its_commits_however_seldom_they_are(
    consumer: Consumer, trigger_s: int
) -> None:
    rows = [row for row in world(trigger_s)[consumer] if row.at_s >= 2 * consumer.commit_every_s + 60]

    assert {(row.lag_at_commit, row.least_lag_at_commit) for row in rows} == {(0, 0)}
    assert {row.status for row in rows} == {"OK"}
    assert rows[-1].commit_rate == pytest.approx(consumer.rate, rel=0.01)
    if consumer.commit_every_s >= trigger_s:
        assert rows[-1].commit_interval_s == pytest.approx(consumer.commit_every_s, abs=trigger_s / 2)
    # The lag that everybody else shows is a sawtooth.
    assert max(row.lag for row in rows) >= consumer.rate * (consumer.commit_every_s - trigger_s)


@pytest.mark.parametrize("trigger_s", TRIGGERS_S)
@pytest.mark.parametrize("consumer", SKEWED, ids=str)
def test_clock_that_is_minutes_off_makes_it_unknown_and_seconds_make_it_wrong_by_seconds(
    consumer: Consumer, trigger_s: int
) -> None:
    rows = world(trigger_s)[consumer]

    # A commit is stamped as if it had been made by so much later.
    most = consumer.rate * max(consumer.skew_s, 0) if abs(consumer.skew_s) * 1000 <= CLOCK_ERROR_MS else 0
    known = [row.lag_at_commit for row in rows if row.lag_at_commit is not None]
    assert all(lag <= most for lag in known)
    if abs(consumer.skew_s) * 1000 <= CLOCK_ERROR_MS:
        assert len(known) == len([row for row in rows if row.at_s >= trigger_s])
    elif abs(consumer.skew_s) > consumer.commit_every_s + 2 * trigger_s:
        assert not any(row.lag > 0 and row.lag_at_commit is not None for row in rows[2:])


@pytest.mark.parametrize("trigger_s", TRIGGERS_S)
@pytest.mark.parametrize("consumer", HUNG, ids=str)
def test_consumer_that_hangs_is_stalled_or_stopped_and_its_lag_grows(
    consumer: Consumer, trigger_s: int
) -> None:
    after = [row for row in world(trigger_s)[consumer] if row.at_s > 200 + consumer.commit_every_s]

    lags = [row.lag for row in after]
    assert lags == sorted(set(lags))
    assert after[-1].status == ("STALL" if consumer.commits_on else "STOP")
    at_commit = [row.lag_at_commit for row in after if row.lag_at_commit is not None]
    assert len(at_commit) == len(after)
    if consumer.commits_on:
        assert at_commit[-1] == pytest.approx(consumer.rate * (after[-1].commit_s or 0) - 200 * 50, abs=400)
    else:
        assert set(at_commit) == {0}


@pytest.mark.parametrize("trigger_s", TRIGGERS_S)
@pytest.mark.parametrize("consumer", SLOW, ids=str)
def test_consumer_that_falls_behind_is_warned_of_and_its_commits_tell_by_how_much(
    consumer: Consumer, trigger_s: int
) -> None:
    last = world(trigger_s)[consumer][-1]

    assert last.status == "WARN"
    assert last.lag_at_commit == pytest.approx(25 * (last.commit_s or 0), abs=2)
    assert last.commit_rate == pytest.approx(25, rel=0.05)
    assert 0 < (last.least_lag_at_commit or 0) <= (last.lag_at_commit or 0)


@pytest.mark.parametrize("trigger_s", TRIGGERS_S)
@pytest.mark.parametrize("consumer", CUT, ids=str)
def test_commit_from_before_a_log_was_cut_tells_nothing_and_the_next_ones_do(
    consumer: Consumer, trigger_s: int
) -> None:
    rows = world(trigger_s)[consumer]

    before_cut = [row for row in rows if row.at_s >= 300 > (row.commit_s or 0)]
    assert {row.lag_at_commit for row in before_cut} <= {None}
    assert rows[-1].lag_at_commit == 0
