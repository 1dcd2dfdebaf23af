"""Turns: which groups are decided about first, when there are more of them than fit between two batches. Pure.

Groups are decided about in need order, some at a time, until the time is up; the others wait for the next batch, and no
group's turn comes twice before every group's has come once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

NEED_COLUMNS = ("group_id", "lag", "lag_seconds")
"""What the order depends on of `schemas.PARTITION_LAG`."""

_Decided = TypeVar("_Decided")


def most_in_need_first(group_ids: Iterable[str], lags: pa.Table) -> tuple[str, ...]:
    """These groups by the age of their oldest unread record, by all their lag, and by name; unknown counts as none.

    Args:
        group_ids: Which.
        lags: `NEED_COLUMNS`; rows of other groups may be there too.
    """
    by_group = lags.group_by("group_id").aggregate([("lag_seconds", "max"), ("lag", "sum")])
    ages, records = (pc.fill_null(by_group[name], 0).to_pylist() for name in ("lag_seconds_max", "lag_sum"))
    needs = {
        name: (-age, -lag)
        for name, age, lag in zip(by_group["group_id"].to_pylist(), ages, records, strict=True)
    }
    return tuple(sorted(group_ids, key=lambda name: (*needs.get(name, (0.0, 0)), name)))


def decide_in_turn(
    groups: Sequence[str],
    decide: Callable[[tuple[str, ...]], _Decided],
    *,
    at_a_time: int,
    for_s: float,
    clock_s: Callable[[], float],
) -> tuple[list[_Decided], tuple[str, ...]]:
    """Decide about the first groups, and about more of them as long as there is time.

    Args:
        groups: In the order of their turns.
        decide: About some of them.
        at_a_time: How many; the clock is read in between.
        for_s: Once this time has passed, no more are begun.
        clock_s: What time it is.

    Returns:
        What was decided, and the groups whose turn has not come.
    """
    begun_s, decided, left = clock_s(), list[_Decided](), tuple(groups)
    while left and (not decided or clock_s() - begun_s < for_s):
        decided.append(decide(left[:at_a_time]))
        left = left[at_a_time:]
    return decided, left
