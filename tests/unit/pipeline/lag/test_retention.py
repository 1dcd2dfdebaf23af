"""How long unread records are kept."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline.lag.age import LagAge
from pipeline.lag.retention import kept_seconds, seconds_left
from tests.support.job.measures import ints


def left(
    *,
    kept_s: float | None = 3600.0,
    age_s: float | None = 600.0,
    most_s: float | None = None,
    at_least: bool = False,
    lag: int | None = 5,
    is_expired: bool = False,
) -> float | None:
    """Seconds of one partition."""
    seconds_old = np.nan if age_s is None else age_s
    most_seconds = np.nan if at_least else seconds_old if most_s is None else most_s
    (seconds,) = seconds_left(
        LagAge(
            seconds=np.array([seconds_old]),
            most_seconds=np.array([most_seconds]),
            is_lower_bound=np.array([at_least]),
        ),
        np.array([np.nan if kept_s is None else kept_s]),
        lag=ints([lag]),
        is_expired=np.array([is_expired]),
    ).tolist()
    return None if np.isnan(seconds) else seconds


def test_first_unread_record_is_kept_for_what_its_age_leaves() -> None:
    assert left() == 3000
    assert left(age_s=4000.0) == 0


def test_record_is_kept_for_no_longer_than_the_earliest_arrival_that_the_samples_allow() -> None:
    assert left(age_s=600.0, most_s=900.0) == 2700
    assert left(age_s=3500.0, most_s=3700.0) == 0


@pytest.mark.parametrize("unknown", ["kept_s", "age_s", "lag"])
def test_what_is_not_known_makes_it_unknown(unknown: str) -> None:
    assert left(**{unknown: None}) is None


def test_nothing_unread_is_not_lost() -> None:
    assert left(lag=0, age_s=0.0) is None


def test_record_that_may_be_older_says_nothing_unless_it_is_too_old_already() -> None:
    assert left(at_least=True) is None
    assert left(at_least=True, age_s=3600.0) == 0


def test_record_that_came_while_nobody_asked_is_kept_for_what_its_greatest_age_leaves_or_for_an_unknown_time() -> (
    None
):
    vague = LagAge(
        seconds=np.array([20.0, 20.0, 3600.0]),
        most_seconds=np.array([3000.0, 3600.0, 9000.0]),
        is_lower_bound=np.ones(3, np.bool_),
    )

    found = seconds_left(vague, np.full(3, 3600.0), lag=ints([5, 5, 5]), is_expired=np.zeros(3, np.bool_))

    np.testing.assert_array_equal(found, [600.0, np.nan, 0.0])


def test_records_that_are_deleted_unread_leave_no_time_whatever_is_known_of_the_topic() -> None:
    assert left(is_expired=True, kept_s=None) == 0
    assert left(is_expired=True, lag=None) is None


def test_topics_of_which_nothing_is_known_keep_their_records_for_nobody_knows_how_long() -> None:
    kept = kept_seconds(pa.array(["t", "u", "t", "v"]), {"t": 7000, "v": 0})

    np.testing.assert_array_equal(kept, [7.0, np.nan, 7.0, 0.0])
    assert len(kept_seconds(pa.array([], pa.string()), {})) == 0
