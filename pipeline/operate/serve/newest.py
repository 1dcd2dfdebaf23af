"""A value that is expensive to compute: computed once for its newest key, however many threads ask for it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Newest(Generic[_Key, _Value]):
    """Keeps the value of the newest key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[_Key, _Value] | None = None

    def of(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value of this key; a thread that asks during the computation waits for it."""
        with self._lock:
            if self._made is None or self._made[0] != key:
                self._made = key, make()
            return self._made[1]
