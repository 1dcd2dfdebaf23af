"""Store: what keeps the tables small while the stream runs, in the stream's own thread (one writer per table)."""

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

import deltalake
from delta.tables import DeltaTable

from pipeline.schemas import TABLES
from pipeline.store import Store

log = logging.getLogger(__name__)

_DAY = timedelta(days=1)


def run(store: Store, *, at_ms: int, keep_days: int, storage_options: Mapping[str, str]) -> None:
    """Compact the append tables, delete rows older than `keep_days`, and remove files no version needs.

    Files and table log are kept as long as the tables' own retention properties say.
    """
    begun = time.monotonic()
    today = datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc).date()
    oldest = today - timedelta(days=keep_days)
    for table in TABLES:
        handle = DeltaTable.forPath(store.spark, store.path(table.name))
        if not table.is_latest:
            column = table.partition_by[0] if table.partition_by else _time_column(table.name)
            handle.delete(f"{column} < '{oldest.isoformat()}'")
            optimize = handle.optimize()
            # Yesterday's rows may still be in files that were written after midnight.
            recent = f"{column} >= '{(today - _DAY).isoformat()}'"
            (optimize.where(recent) if table.partition_by else optimize).executeCompaction()
        handle.vacuum()
        _clean_log(store, table.name, storage_options)
    log.info("upkeep done", extra={"seconds": round(time.monotonic() - begun, 1)})


def _time_column(name: str) -> str:
    return "created_at" if name == "recommendations" else "updated_at"


def _clean_log(store: Store, name: str, storage_options: Mapping[str, str]) -> None:
    """Expire log files now: Spark's Delta does it by whole days only, and a day is thousands of commits here."""
    deltalake.DeltaTable(store.path(name), storage_options=dict(storage_options) or None).cleanup_metadata()
