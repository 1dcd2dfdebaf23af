"""Health of the stream, as its tables and its driver's heartbeat show it; no broker or driver is asked."""

from pipeline.config.model import Config
from pipeline.tables.owner import heartbeat
from pipeline.tables.owner.health import Health, Sight, judge
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.storage import why_full

CLOCKS_DIFFER_S = 10
"""A stamp so far ahead of this machine's clock shows that the clocks differ, and no age can be told from it."""


def look(tables: Tables, config: Config, *, now_ms: int) -> Health:
    """Health of the stream that writes these tables.

    Raises:
        MissingTableError: No driver has ever made them.
        StoreError: They, or the heartbeat, cannot be read.
    """
    return judge(sight(tables, tables.open("partition_lag").stamp, config), now_ms=now_ms)


def sight(tables: Tables, stamp: Stamp | None, config: Config) -> Sight:
    """Observations of the stream; `stamp` is that of its newest batch, None before the first.

    Raises:
        StoreError: The heartbeat cannot be read.
    """
    has_beats = heartbeat.is_kept(tables.root)
    return Sight(
        has_beats=has_beats,
        beat=heartbeat.read(tables.root, tables.storage_options) if has_beats else None,
        batch_at_ms=None if stamp is None else stamp.at_ms,
        reason=None if stamp is None else stamp.reason,
        held=None if stamp is None else stamp.held,
        is_clock_behind=stamp is not None and stamp.is_clock_behind,
        full=why_full(tables.root),
        remarks=() if stamp is None else stamp.remarks,
        interval_s=config.trigger.interval_s,
    )
