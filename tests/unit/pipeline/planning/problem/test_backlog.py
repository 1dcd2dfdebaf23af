"""Lag that a commit interval explains is no backlog, and lag beyond it is."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.model.arrays import Int64s
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import backlog, due_s, waited_s
from tests.support.planning.facts import committing, partitions


def lag_of(facts: PartitionFacts) -> Int64s:
    return facts.log_end - facts.committed


def behind(facts: PartitionFacts) -> list[int]:
    return backlog(facts, lag_of(facts)).tolist()


@pytest.mark.parametrize("ago_s", [0, 30, 59, 90])
def test_group_that_keeps_up_and_commits_every_minute_has_no_backlog(ago_s: float) -> None:
    facts = committing([100.0, 0.0], every_s=60, ago_s=ago_s)

    assert lag_of(facts).tolist() == [100 * ago_s, 0]
    assert behind(facts) == [0, 0]


def test_of_a_late_commit_counts_what_has_arrived_since_it_was_due() -> None:
    """A commit every minute is late after a minute and a half."""
    assert behind(committing([100.0], every_s=60, ago_s=120)) == [3_000]


def test_what_the_group_was_behind_at_its_commit_counts_whatever_its_age() -> None:
    assert [behind(committing([100.0], behind=[7_000], every_s=60, ago_s=s))[0] for s in (0, 60, 120)] == [
        7_000,
        7_000,
        10_000,
    ]


def test_group_that_caught_up_and_got_a_record_after_hours_is_not_late() -> None:
    """It has committed nothing since, for there was nothing to read."""
    facts = replace(committing([0.001], every_s=5, ago_s=10_000), lag_age_s=np.array([7.0]))

    assert lag_of(facts).tolist() == [10]
    assert waited_s(facts).tolist() == [7.0]
    assert behind(facts) == [0]


@pytest.mark.parametrize(("ago_s", "late"), [(300, 0), (400, 10_000)])
def test_partition_without_a_commit_habit_is_late_after_five_minutes(ago_s: float, late: int) -> None:
    facts = replace(committing([100.0], ago_s=ago_s), commit_interval_s=np.array([np.nan]))

    assert due_s(facts).tolist() == [300.0]
    assert behind(facts) == [late]


def test_without_the_lag_at_the_commit_what_arrives_in_its_interval_is_taken_off_the_lag() -> None:
    unknown = np.array([UNKNOWN, UNKNOWN])
    facts = replace(committing([100.0, 100.0], behind=[0, 7_000], ago_s=30), lag_at_commit=unknown)

    assert lag_of(facts).tolist() == [3_000, 10_000]
    assert behind(facts) == [0, 7_000]


def test_lag_that_fell_below_that_of_the_commit_is_the_backlog() -> None:
    """Retention has deleted what was to be read."""
    facts = replace(committing([0.0], ago_s=30), lag_at_commit=np.array([9_000]), log_end=np.array([500]))
    facts = replace(facts, committed=np.array([100]))

    assert behind(facts) == [400]


def test_partition_that_was_never_committed_is_behind_by_all_that_it_has() -> None:
    facts = replace(partitions([None]), arrival_rate=np.array([100.0]))

    assert backlog(facts, np.array([5_000])).tolist() == [5_000]


@pytest.mark.parametrize(("at_commit", "counts"), [(500, 0), (501, 501)])
def test_lag_that_clocks_may_make_of_nothing_is_no_backlog(at_commit: int, counts: int) -> None:
    """Five seconds of arrivals; where nothing arrives every record counts."""
    assert behind(committing([100.0, 0.0], behind=[at_commit, 3], every_s=60)) == [counts, 3]
