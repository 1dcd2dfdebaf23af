"""Progress: how far the topics of the job are read, and what is known of their partitions."""

import math
from dataclasses import dataclass

from pipeline.run.readiness import Readiness
from pipeline.tables.stamp import Stamp


@dataclass(slots=True, kw_only=True)
class ReadProgress:
    """What one batch leaves for the next about the partitions that it reads."""

    readiness: Readiness
    stamp: Stamp | None = None
    """The newest of `partition_lag`; it says how far each partition was read."""
    has_doubtful: bool = True
    """Some row may be unconfirmed (`unconfirmed_reason`); it is known only when the tables were asked."""
    rereads_logged_ms: int = 0
    """Clock of the batch that logged last that tombstones are kept for too short a time."""
    outage_logged_ms: int = 0
    """Clock of the batch that logged last that no broker answers."""
    clock_logged_s: float = -math.inf
    """When it was logged last that the clock is behind the tables, by a clock that only goes forward."""

    @property
    def behind(self) -> tuple[int, ...]:
        """Partitions of the offsets topic that had not been read to their end by the last batch."""
        return () if self.stamp is None else self.stamp.behind
