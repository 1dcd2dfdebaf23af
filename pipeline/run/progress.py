"""Progress: how far the topics of the job are read, and what is known of their partitions."""

from dataclasses import dataclass, field

from pipeline.kafka.positions import PartitionKey, Position
from pipeline.run.readiness import Readiness


@dataclass(slots=True, kw_only=True)
class ReadProgress:
    """What one batch leaves for the next about the partitions that it reads."""

    readiness: Readiness
    positions: dict[PartitionKey, Position] = field(default_factory=dict)
    """How far each partition was read by the last batch."""
    distrusted: dict[PartitionKey, str] = field(default_factory=dict)
    """Partitions to be read again from their start, and why."""
    followed: frozenset[PartitionKey] = frozenset()
    """Partitions whose leader answered the last batch, so that nothing was missed since."""
    behind: tuple[int, ...] = ()
    """Partitions of the offsets topic that had not been read to their end by the last batch."""
    has_doubtful: bool = True
    """Some row may be unconfirmed (`unconfirmed_reason`); it is known only when the tables were asked."""
    rereads_logged_ms: int = 0
    """Clock of the batch that logged last that tombstones are kept for too short a time."""
    outage_logged_ms: int = 0
    """Clock of the batch that logged last that no broker answers."""
