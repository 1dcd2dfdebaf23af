"""Replay: what a batch knows of the batches before it, so that one that runs again is the same batch.

The tables are what is known after a crash: each names the batch that wrote it last, with its clock. They are asked
once, by the first batch after a start; nothing but a start makes a batch run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from pipeline.source.offset import SourceOffset, state_of
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

FIRST_WRITTEN = "topic_offsets"
"""The table that a batch writes first: with its clock, and with what it has read."""
_WRITTEN = (
    FIRST_WRITTEN,
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


@dataclass(slots=True, kw_only=True)
class ReplayContext:
    """The query that the batches belong to, and the position of its clock."""

    query: str = field(default_factory=lambda: uuid4().hex)
    """Name of this query: what was chosen for another one may be old."""
    at_ms: int = 0
    """Clock of the newest batch."""
    passed_over: int = 0
    """Batches of this query in a row that were chosen from other tables than the driver knows."""
    is_first: bool = True
    """True until a batch has completed all steps since the start: the next one looks back (`Past`)."""
    is_new_cluster: bool = False
    """Until then: the tables are still about another cluster that had this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Contents of the tables when the first batch after a start begins; only that batch can have run before."""

    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    """The newest of each table that has one."""

    def holding(self, tick: int) -> Mapping[str, Stamp]:
        """The tables that hold the batch of that tick: it ran before, up to some step."""
        return {name: stamp for name, stamp in self.stamps.items() if stamp.tick == tick}

    @property
    def at_ms(self) -> int:
        """Clock of the newest batch that any table holds; 0 when all are empty."""
        return max((stamp.at_ms for stamp in self.stamps.values()), default=0)

    @property
    def decided_at_ms(self) -> int:
        """Return the clock of the newest batch in `plan_state`; 0 if there is none."""
        decided = self.stamps.get("plan_state")
        return decided.at_ms if decided is not None else 0


def look_back(store: Store) -> Past:
    """Read what the tables hold when the first batch after a start begins."""
    return Past(stamps={name: stamp for name in _WRITTEN if (stamp := store.stamp(name))})


def why_passed_over(
    offset: SourceOffset, newest: Stamp | None, begun: Stamp | None, *, query: str, cluster_id: str
) -> str | None:
    """Return why the batch of an offset must not write; None if it may.

    Either it was chosen from another state of the tables: the checkpoint or the tables are an older copy, or come from
    another place. Or it was chosen for an earlier query that never began it, so the leaders' answers may be a week old.
    The next batch is chosen now from the tables, so nothing is lost.

    Args:
        offset: Of the batch.
        newest: Newest stamp of `partition_lag`.
        begun: Newest stamp of the table that a batch writes first.
        query: Name of this query.
        cluster_id: Kafka's id of this cluster.
    """
    if offset.cluster_id not in {"", cluster_id}:
        return f"it was chosen for Kafka cluster {offset.cluster_id}, and this is {cluster_id}"
    if newest is not None and newest.tick == offset.tick:
        return None
    if offset.made_from != state_of(newest):
        return f"it was chosen from tables as of {offset.made_from}, and these are as of {state_of(newest)}"
    if offset.chosen_by != query and (begun is None or begun.tick != offset.tick):
        return "it was chosen before this query began, and nothing of it is stored: the logs may have changed since"
    return None
