"""Rows of the tables, as steps and tasks take and leave them."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment

_DAY_MS = 86_400_000


def less_ghosts(stored: pa.Table, ghosts: Sequence[str] | None) -> pa.Table:
    """The stored rows that count.

    Args:
        stored: With `group_id`.
        ghosts: `batch.writes.ghosts_of`.
    """
    if ghosts is None:
        return stored.slice(0, 0)
    return stored.filter(pc.invert(pc.is_in(stored["group_id"], value_set=pa.array(ghosts, pa.string()))))


def of_cluster(cluster: str, rows: pa.Table) -> pa.Table:
    """The rows with the cluster's name."""
    return rows.append_column("cluster", pa.repeat(pa.scalar(cluster, pa.string()), rows.num_rows))


def wanted_topics(stored: pa.Table, unwanted: tuple[str, ...] | None) -> pa.Table:
    """The stored rows, less those about topics that are no longer wanted; None: all are about another cluster."""
    if unwanted is None:
        return stored.slice(0, 0)
    return stored.filter(pc.invert(pc.is_in(stored["topic"], value_set=pa.array(unwanted, pa.string()))))


def remembered_topics(stored: pa.Table, *, at_ms: int, keep_days: int) -> pa.Table:
    """The stored rows, less those of partitions that have been gone for so many days: topics come and go for ever."""
    oldest = moment(at_ms - keep_days * _DAY_MS)
    return stored.filter(pc.fill_null(pc.greater_equal(stored["deleted_at"], oldest), True))
