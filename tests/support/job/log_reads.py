"""How often Delta logs are read: each of these calls costs an object store requests, one for each commit or a few."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from deltalake import DeltaTable

_COUNTED = {
    "__init__": "open",
    "update_incremental": "look",
    "transaction_version": "replay",
    "history": "replay",
}


@contextmanager
def log_reads() -> Iterator[Counter[str]]:
    """What this process does with logs to the end of the block: `open`, `look` and `replay`."""
    counts = Counter[str]()
    with pytest.MonkeyPatch.context() as patch:
        for method, name in _COUNTED.items():
            patch.setattr(DeltaTable, method, _counted(getattr(DeltaTable, method), name, counts))
        yield counts


def _counted(call: Callable[..., Any], name: str, counts: Counter[str]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return call(*args, **kwargs)

    return counted
