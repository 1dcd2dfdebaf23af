import numpy as np

from assignor.evaluation.balance import AugmentingPath, find_augmenting_path

MAY_READ = np.array([[True, True, False], [False, True, True]])
"""Topics t and u x members a, b and c."""


def test_path_leads_over_a_member_that_reads_both_topics() -> None:
    holds = np.array([[True, False, False], [False, True, False]])

    path = find_augmenting_path(holds, MAY_READ, np.array([2, 1, 0]))

    assert path == AugmentingPath(count=2, to_member=2)


def test_most_even_counts_have_no_path() -> None:
    holds = np.array([[True, True, False], [False, False, True]])

    assert find_augmenting_path(holds, MAY_READ, np.array([1, 1, 1])) is None
