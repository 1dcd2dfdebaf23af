"""Tables of one of several clusters: while their store does not answer, requests about other clusters do not wait.

By default delta-rs retries a silent S3 endpoint for three minutes, and answers about all clusters open tables of each.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic

from pipeline.config.places import is_folder_of_host
from pipeline.errors import MissingTableError, StoreError
from pipeline.tables.reading import OpenTable, Tables

AGAIN_AFTER_S = 10.0
"""Time for which a failed store is not asked again."""
PATIENCE_S = 1.0
"""Time that a request waits for a retry; a later answer reaches only the next request."""
_BOUNDS = {"timeout": "10s", "connect_timeout": "3s", "retry_timeout": "10s", "max_retries": "5"}
"""Options of delta-rs, which by default gives up after 30 s per attempt, and 180 s in all."""


@dataclass(slots=True)
class _Memory:
    """The newest failure, for all threads."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    failure: str | None = None
    again_at_s: float = 0.0
    is_asked: bool = False
    """A thread is retrying."""


@dataclass(frozen=True, slots=True)
class RememberingTables(Tables):
    """Opens tables like `Tables`, but repeats a failure for some seconds, and retries without blocking requests."""

    _memory: _Memory = field(default_factory=_Memory, repr=False, compare=False)

    def open(self, name: str) -> OpenTable:
        """Open a table as `Tables.open` does.

        Raises:
            MissingTableError: There is no such table under the root.
            StoreError: It cannot be opened, or could not a moment ago.
        """
        memory = self._memory
        with memory.lock:
            failure = memory.failure
            if failure is not None:
                if memory.is_asked or monotonic() < memory.again_at_s:
                    raise StoreError(failure)
                memory.is_asked = True
        return self._open(name) if failure is None else self._open_again(name, failure)

    def _open_again(self, name: str, failure: str) -> OpenTable:
        found = SimpleQueue[OpenTable | StoreError]()

        def ask() -> None:
            try:
                found.put(self._open(name))
            except StoreError as error:
                found.put(error)
            finally:
                self._memory.is_asked = False

        threading.Thread(target=ask, name=f"opens {self.root} again", daemon=True).start()
        try:
            table = found.get(timeout=PATIENCE_S)
        except Empty:
            raise StoreError(failure) from None
        if isinstance(table, StoreError):
            raise table
        return table

    def _open(self, name: str) -> OpenTable:
        memory = self._memory
        try:
            table = Tables.open(self, name)
        except MissingTableError:
            # The store has answered.
            memory.failure = None
            raise
        except StoreError as error:
            with memory.lock:
                memory.failure, memory.again_at_s = str(error), monotonic() + AGAIN_AFTER_S
            raise
        memory.failure = None
        return table


def remembering(tables: Tables) -> RememberingTables:
    """Return the same tables with shorter timeouts than those of delta-rs, unless their options set them."""
    options = tables.storage_options
    return RememberingTables(tables.root, options if is_folder_of_host(tables.root) else bounded(options))


def bounded(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Options of delta-rs with timeouts of a store's answers; given ones stay."""
    # delta-rs takes them in either case, with the store's prefix or without.
    given = {re.sub("^(aws|azure|google)_", "", name.lower()) for name in storage_options}
    return {**{name: value for name, value in _BOUNDS.items() if name not in given}, **storage_options}
