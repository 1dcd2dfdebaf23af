"""Memory: the positions in Kafka that the tables hold, and whether they are still valid.

The check runs at each start and after each failure of the query. What it cannot see (a truncated log, one that was
unavailable for too long) is checked per partition before each batch (`positions.choose_spans`). If the positions are
invalid, everything is read again from the start, and rows are provisional until the end is reached; epochs, orders and
history stay, and nothing has to be deleted by hand.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

log = logging.getLogger(__name__)

_TABLE = "partition_lag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """State that a driver starts from."""

    stamp: Stamp | None
    """Stamp of the newest batch; None if there was none."""
    doubt: str | None
    """Why its positions do not count."""
    is_new_cluster: bool

    def keep(self, store: Store) -> Stamp | None:
        """The newest stamp from now on: a doubt is written down, so that it outlives a driver that dies early."""
        if self.stamp is not None and self.doubt is not None:
            log.warning(
                "the offsets topic is read again from its start; rows are provisional until its end is reached",
                extra={"reason": self.doubt},
            )
            # No batch that was begun before goes on.
            stamp = replace(self.stamp, positions={}, distrusted=(), asked={}, tick=0)
            store.restamp(_TABLE, stamp)
            return stamp
        return self.stamp


def recall(store: Store, *, cluster_id: str, filters: str) -> Memory:
    """Return the state in the tables, checked against the present cluster and filters."""
    stamp = store.stamp(_TABLE)
    if stamp is None:
        return Memory(stamp=None, doubt=None, is_new_cluster=False)
    written_ms = {name: _written_ms(store, name) for name in stamp.written_ms}
    return Memory(
        stamp=stamp,
        doubt=doubt(stamp, cluster_id=cluster_id, filters=filters, written_ms=written_ms),
        is_new_cluster=bool(stamp.cluster_id) and stamp.cluster_id != cluster_id,
    )


def _written_ms(store: Store, name: str) -> int:
    """When the table was written last, as far as it tells: a batch that died may have left it without rows."""
    own = store.stamp(name)
    return max(store.written_ms(name) or 0, 0 if own is None else own.at_ms)


def doubt(stamp: Stamp, *, cluster_id: str, filters: str, written_ms: Mapping[str, int]) -> str | None:
    """Return why the positions of a stamp are invalid; None if they are valid.

    Args:
        stamp: Of the newest batch.
        cluster_id: Kafka's id of the cluster.
        filters: What identifies the patterns of topics and groups.
        written_ms: When the tables that the stamp names were written last.
    """
    if stamp.positions is None:
        return "the tables are an earlier version's, which kept positions in the checkpoint"
    if not stamp.positions:
        return "an earlier start found that it cannot continue from them, and has read nothing yet"
    if stamp.cluster_id != cluster_id:
        return f"the tables were filled from Kafka cluster {stamp.cluster_id}, and this is {cluster_id}"
    if stamp.filters != filters:
        return "source.topics_*, source.offsets or source.groups_* have changed, or names of cluster or control topics"
    older = sorted(name for name, at_ms in stamp.written_ms.items() if written_ms[name] < at_ms)
    if older:
        return f"table {', '.join(older)} is older than partition_lag: it was lost, or restored from a copy"
    return None
