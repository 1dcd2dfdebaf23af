"""How jobs are cut: by cores while there is enough for each, by memory whatever the cores."""

import pytest

from pipeline import task_sizes


@pytest.mark.parametrize(
    ("groups", "cores", "ranges"),
    [(10, 8, 1), (99, 8, 1), (100, 8, 2), (200, 2, 2), (1000, 1, 4), (1000, 8, 8)],
)
def test_tables_are_folded_by_as_many_tasks_as_are_worth_it(groups: int, cores: int, ranges: int) -> None:
    rows = {f"{number:04}": 1000 for number in range(groups)}

    assert task_sizes.folding("group_id", rows, cores=cores).count == ranges


@pytest.mark.parametrize(
    ("partitions", "cores", "tasks"), [(499, 8, 1), (500, 8, 2), (1000, 2, 2), (1000, 8, 3), (0, 8, 1)]
)
def test_groups_are_decided_by_as_many_tasks_as_are_worth_it(partitions: int, cores: int, tasks: int) -> None:
    groups = dict.fromkeys("abcd", partitions)

    shares = task_sizes.deciding(groups, cores=cores)

    assert sorted(name for share in shares for name in share) == [*"abcd"]
    assert len(shares) == tasks
