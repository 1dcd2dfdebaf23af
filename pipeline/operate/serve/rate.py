"""A limit per address, against guessing."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

_MOST_ADDRESSES = 1_000


class Rate:
    """Limits the tries of each address within a time; forgets the addresses that have been silent for longest."""

    def __init__(self, most: int, *, per_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._per_s = per_s
        self._now_s = now_s
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()

    def admits(self, address: str) -> bool:
        """Return whether this address may try again; a rejected attempt does not count."""
        tries = self._tries.setdefault(address, deque())
        self._tries.move_to_end(address)
        if len(self._tries) > _MOST_ADDRESSES:
            self._tries.popitem(last=False)
        now_s = self._now_s()
        while tries and now_s - tries[0] >= self._per_s:
            tries.popleft()
        if len(tries) >= self._most:
            return False
        tries.append(now_s)
        return True
