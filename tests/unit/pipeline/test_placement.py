"""Work placed on tasks: every item once, and no task has much more than another."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from pipeline.placement import placed


def test_largest_item_has_a_task_of_its_own_when_it_outweighs_the_others() -> None:
    assert placed([10, 100, 20], int, tasks=2) == [[100], [20, 10]]


def test_equal_items_are_placed_in_the_order_in_which_they_come() -> None:
    assert placed("dacb", lambda _: 1, tasks=2) == [["d", "c"], ["a", "b"]]


def test_tasks_without_work_have_empty_shares() -> None:
    assert placed([], int, tasks=2) == [[], []]


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(1, 3))
def test_largest_share_is_at_most_four_thirds_of_the_best_split(sizes: list[int], tasks: int) -> None:
    shares = placed(sizes, int, tasks=tasks)

    assert sorted(size for share in shares for size in share) == sorted(sizes)
    best = min(
        max(sum(size for size, task in zip(sizes, split, strict=True) if task == one) for one in range(tasks))
        for split in product(range(tasks), repeat=len(sizes))
    )
    assert 3 * max(map(sum, shares)) <= 4 * best
