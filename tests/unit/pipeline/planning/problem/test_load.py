"""What commits show of a member's speed, and of one that stands still."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import backlog
from pipeline.planning.problem.load import Before, Load, member_loads
from tests.support.planning.facts import NOW_MS, committing


def loads(
    facts: PartitionFacts,
    *held: list[int],
    changed_s_ago: float = 3600,
    calm_s: float = math.nan,
    is_seen: bool = True,
) -> list[Load]:
    """Of members that hold these partitions since so long, and are usually so far behind at their commits."""
    lag = facts.log_end - facts.committed
    return member_loads(
        facts,
        [np.array(own, np.int64) for own in held],
        lag,
        backlog(facts, lag),
        [
            Before(
                changed_ms=NOW_MS - round(changed_s_ago * 1000),
                is_settled=True,
                calm_s=calm_s,
                committed_ms=_newest_ms(facts, own) if is_seen else 0,
            )
            for own in held
        ],
        now_ms=NOW_MS,
    )


def _newest_ms(facts: PartitionFacts, own: list[int]) -> int:
    """Newest commit of the member, as the decision before saw it."""
    times = (facts.observed_at_ms - facts.commit_age_s * 1000)[own]
    return 0 if not own or np.isnan(times).all() else round(float(np.nanmax(times)))


def shows(facts: PartitionFacts, **options: Any) -> float | None:
    """Of one member that holds all."""
    (load,) = loads(facts, list(range(len(facts.topic))), **options)
    return load.shows


def slow(**changes: Any) -> PartitionFacts:
    """It drains 80 of 100 records/s with a minute of backlog, and commits every 10 s."""
    return replace(committing([100.0], drained=[80.0], behind=[6_000], every_s=10), **changes)


def test_member_shows_what_it_drains_between_two_commits_with_a_backlog_at_both() -> None:
    (load,) = loads(slow(), [0])

    assert (load.shows, load.shows_at_ms, load.rate, load.lag) == (80.0, NOW_MS, 80.0, 6_000)
    assert load.is_backlogged


@pytest.mark.parametrize(("least", "shown"), [(0, None), (800, None), (801, 80.0)])
def test_speed_counts_only_with_ten_seconds_of_backlog_at_every_commit(
    least: int, shown: float | None
) -> None:
    assert shows(slow(least_lag=np.array([least]))) == shown


@pytest.mark.parametrize(("changed_s_ago", "shown"), [(29.9, None), (30, 80.0)])
def test_speed_from_before_and_after_a_change_of_partitions_is_nobodys(
    changed_s_ago: float, shown: float | None
) -> None:
    assert shows(slow(), changed_s_ago=changed_s_ago) == shown


@pytest.mark.parametrize(
    ("every_s", "span_s", "shown"),
    [(10, 60, 80.0), (10, 61, None), (45, 90, 80.0), (45, 91, None)],
)
def test_speed_over_a_gap_between_commits_is_too_low_to_count(
    every_s: float, span_s: float, shown: float | None
) -> None:
    facts = slow(commit_interval_s=np.array([every_s]), commit_span_s=np.array([span_s]))

    assert shows(facts) == shown


@pytest.mark.parametrize(("age_s", "shown"), [(15, 80.0), (15.1, None)])
def test_member_whose_next_commit_is_late_shows_nothing(age_s: float, shown: float | None) -> None:
    assert shows(slow(commit_age_s=np.array([age_s]))) == shown


@pytest.mark.parametrize(
    ("drained", "least", "shown"),
    [(100.0, 4_000, None), (100.0, 4_001, 100.0), (91.0, 3_640, None), (80.0, 3_700, 80.0)],
    ids=["a batch behind", "more than a batch", "a batch, give or take", "not keeping up"],
)
def test_member_that_reads_in_batches_of_its_commit_interval_and_keeps_up_shows_nothing(
    drained: float, least: int, shown: float | None
) -> None:
    facts = committing([100.0], drained=[drained], behind=[least], every_s=30)

    assert shows(facts) == shown


@pytest.mark.parametrize(("unseen", "shown"), [(9.0, 80.0), (90.0, None)])
def test_speed_counts_only_where_nearly_all_that_a_member_reads_is_seen(
    unseen: float, shown: float | None
) -> None:
    facts = committing([100.0, unseen], drained=[80.0, unseen], behind=[6_000, 6_000], every_s=10)
    facts = replace(facts, commit_rate=np.array([80.0, np.nan]))

    assert shows(facts) == shown


def test_partitions_that_keep_up_do_not_hide_what_a_member_shows_nor_add_to_it() -> None:
    facts = committing([100.0, 5.0], drained=[80.0, 5.0], behind=[6_000, 0], every_s=10)

    assert shows(facts) == 85.0


def test_each_member_shows_its_own_speed_and_one_without_partitions_none() -> None:
    facts = committing([100.0, 100.0], drained=[80.0, 70.0], behind=[6_000, 9_000], every_s=10)

    assert [load.shows for load in loads(facts, [1], [], [0])] == [70.0, None, 80.0]


@pytest.mark.parametrize(("ago_s", "still"), [(15, False), (16, True)])
def test_member_without_a_commit_for_longer_than_its_habit_stands_still(ago_s: float, *, still: bool) -> None:
    (load,) = loads(committing([100.0], drained=[80.0], behind=[6_000], every_s=10, ago_s=ago_s), [0])

    assert (load.stands_still, load.shows is None) == (still, still)


def test_old_commit_that_is_newer_than_the_last_one_seen_is_of_a_clock_that_is_behind() -> None:
    late = committing([100.0], drained=[80.0], behind=[6_000], every_s=10, ago_s=60)

    assert [loads(late, [0], is_seen=seen)[0].stands_still for seen in (True, False)] == [True, False]


def test_lag_of_one_that_a_marker_leaves_is_nothing_to_read() -> None:
    (load,) = loads(committing([0.0], drained=[0.0], behind=[1], every_s=10, ago_s=10_000), [0])

    assert not load.stands_still


def test_member_that_commits_the_same_offset_again_with_records_to_read_stands_still() -> None:
    (load,) = loads(committing([100.0], drained=[0.0], behind=[6_000], every_s=10, ago_s=2), [0])

    assert (load.stands_still, load.shows) == (True, None)


@pytest.mark.parametrize("ago_s", [2, 10_000])
def test_member_with_nothing_to_read_is_idle_and_does_not_stand_still(ago_s: float) -> None:
    (load,) = loads(committing([0.0, 0.0], every_s=10, ago_s=ago_s), [0, 1])

    assert not load.stands_still


def test_member_that_was_idle_until_a_moment_ago_does_not_stand_still() -> None:
    idle = committing([0.001], every_s=10, ago_s=10_000)

    assert [loads(replace(idle, lag_age_s=np.array([s])), [0])[0].stands_still for s in (3.0, 16.0)] == [
        False,
        True,
    ]


def test_member_that_commits_one_of_its_partitions_does_not_stand_still() -> None:
    facts = committing([100.0, 100.0], behind=[6_000, 6_000], every_s=10)
    facts = replace(facts, commit_age_s=np.array([1.0, 500.0]))

    assert not loads(facts, [0, 1])[0].stands_still


def test_partition_whose_next_commit_is_late_is_no_evidence_though_others_are_committed() -> None:
    facts = committing([100.0, 100.0], drained=[80.0, 80.0], behind=[6_000, 6_000], every_s=10)

    (load,) = loads(replace(facts, commit_age_s=np.array([1.0, 16.0])), [0, 1])

    assert (load.shows, load.stands_still) == (None, False)
