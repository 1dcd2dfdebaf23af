"""What may have been true between two times, by what was asked before, within and after."""

import math

from tests.support.brokers.broker_truth import Range, Sample, true_within

GROWING = (Sample(0, 1, 10), Sample(4, 5, 20), Sample(8, 9, 30))


def test_time_between_two_questions_may_have_had_either_answer() -> None:
    assert true_within(GROWING, 2, 3) == Range(10, 20)


def test_questions_within_count_and_so_do_their_neighbours() -> None:
    assert true_within(GROWING, 3, 6) == Range(10, 30)


def test_answer_that_was_under_way_counts_for_all_of_its_time() -> None:
    assert true_within(GROWING, 4.2, 4.8) == Range(10, 30)


def test_what_went_back_counts_though_both_ends_are_higher() -> None:
    assert true_within((Sample(0, 1, 10), Sample(2, 3, 5), Sample(4, 5, 10)), 1.5, 3.5).holds(5)


def test_nothing_is_ruled_out_where_nobody_asked() -> None:
    assert true_within(GROWING, 10, 11) == Range(30, math.inf)
    assert true_within(GROWING, -2, -1) == Range(-math.inf, 10)
    assert true_within((), 1, 2).holds(7)


def test_offset_outside_was_never_true() -> None:
    assert not true_within(GROWING, 2, 3).holds(21)
    assert not true_within(GROWING, 2, 3).holds(9)
