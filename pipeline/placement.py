"""Work placed on tasks, so that none of them has much more than another. Pure."""

from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")


def placed(items: Iterable[_T], size: Callable[[_T], int], *, tasks: int) -> list[list[_T]]:
    """The items in `tasks` shares: longest processing time first, each to the share with least.

    The largest share is at most 4/3 of what the best split would have (Graham 1969). The same items in the same order
    give the same shares.

    Args:
        items: Of equal ones, the earlier one is placed first.
        size: Of an item, at least 0.
        tasks: At least 1; with more tasks than items, some shares are empty.
    """
    shares: list[list[_T]] = [[] for _ in range(tasks)]
    loads = [0] * tasks
    for item in sorted(items, key=size, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(item)
        loads[least] += size(item)
    return shares
