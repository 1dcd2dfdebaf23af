"""Every version of `partition_lag` that a reader could have seen, and when it was there."""

import threading
import time
from typing import Any, NamedTuple

from deltalake import DeltaTable

from pipeline.config.model import Config

_LOOK_EVERY_S = 0.1
_STOPPED_WITHIN_S = 60.0

Row = dict[str, Any]


class Seen(NamedTuple):
    """One version of the table."""

    at: float
    """When it was there at the latest, s since the epoch."""
    rows: list[Row]

    @property
    def updated_at(self) -> float:
        """Clock of the batch that wrote it, s since the epoch."""
        return float(self.rows[0]["updated_at"].timestamp())

    @property
    def is_final(self) -> bool:
        """All is known of all rows: their commits, and their log ends as of this batch."""
        return not any(row["provisional"] or is_old(row) for row in self.rows)


def is_old(row: Row) -> bool:
    """Whether the row says that its log end was not answered in its batch."""
    return row["log_observed_at"] is None or bool(row["log_observed_at"] < row["updated_at"])


class TableWatch:
    """Looks for as long as the `with` block lasts.

    Attributes:
        seen: Versions with rows, oldest first.
        failure: Why it looks no more; null while it does.
    """

    def __init__(self, config: Config) -> None:
        """Look at nothing yet; the table has to be there when the block begins."""
        self.seen: list[Seen] = []
        self.failure: Exception | None = None
        self._path = f"{config.tables.root}/partition_lag"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "TableWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_STOPPED_WITHIN_S)

    def since(self, at: float) -> list[Seen]:
        """Versions whose batch began at this time or later."""
        return [one for one in self.seen if one.updated_at >= at]

    def _run(self) -> None:
        try:
            known = DeltaTable(self._path).version()
            while not self._stop.wait(_LOOK_EVERY_S):
                newest, at = DeltaTable(self._path).version(), time.time()
                for version in range(known + 1, newest + 1):
                    rows = DeltaTable(self._path, version=version).to_pyarrow_table().to_pylist()
                    if rows:
                        self.seen.append(Seen(at, rows))
                known = newest
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.failure = error
