"""Replay: what a batch knows of the batches before it, so that one that runs again is the same batch.

The tables are what is known after a crash: each names the batch that wrote it last, with its clock. They are asked
once, by the first batch after a start; nothing but a start makes a batch run again.
"""

from dataclasses import dataclass, field

from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

_WRITTEN = (
    "topic_offsets",
    "consumer_groups",
    "group_history",
    "acks",
    "orders",
    "partition_lag",
    "lag_history",
    "quarantine",
    "plan_state",
    "recommendations",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What only the first batch after a start has to know."""

    is_new_cluster: bool = False
    """The tables are about another cluster that had the same name."""


@dataclass(slots=True, kw_only=True)
class ReplayContext:
    """Which query batches belong to, and how far its clock is."""

    query_id: str = ""
    """Of the checkpoint, which numbers the batches."""
    at_ms: int = 0
    """Clock of the newest batch."""
    start: Start | None = field(default_factory=Start)
    """None as soon as a batch has gone through all steps."""

    @property
    def is_first(self) -> bool:
        """Whether no batch has gone through all steps since the start."""
        return self.start is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the tables say of the batches before a start."""

    written: frozenset[str]
    """Tables that hold the batch which begins: it ran before, up to some step."""
    at_ms: int
    """Clock of the newest batch that any table holds; 0 when all are empty."""
    decided_at_ms: int
    """Clock of the newest batch in `plan_state`; 0 when there is none."""


def look_back(store: Store, *, query_id: str, batch_id: int) -> Past:
    """What the tables hold when the first batch after a start begins."""
    stamps: dict[str, Stamp] = {name: stamp for name in _WRITTEN if (stamp := store.stamp(name))}
    lags, decided, first = stamps.get("partition_lag"), stamps.get("plan_state"), stamps.get("topic_offsets")
    # Where all is read again (`memory`), what a batch left half done has read does not count.
    is_reread = lags is not None and lags.positions == {}
    done = () if is_reread or not _follows(first, lags) else stamps.items()
    return Past(
        written=frozenset(name for name, stamp in done if stamp.is_batch(query_id, batch_id)),
        at_ms=max((stamp.at_ms for stamp in stamps.values()), default=0),
        decided_at_ms=decided.at_ms if decided is not None else 0,
    )


def _follows(first: Stamp | None, lags: Stamp | None) -> bool:
    """Whether the batch of `topic_offsets` has read on where `partition_lag` ends, or is in it already.

    In tables that were copied while a driver wrote, batches may lie between the two, and must not be passed over.
    """
    if first is None or lags is None or first.is_batch(lags.query_id, lags.batch_id):
        return True
    positions = lags.positions or {}
    return all(
        span.key in first.reread or span.key not in positions or span.start == positions[span.key].offset
        for span in first.spans
    )
