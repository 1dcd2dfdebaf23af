"""Rows of the tables, as steps and tasks take and leave them."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment

_DAY_MS = 86_400_000


def without(rows: pa.Table, column: str, values: Sequence[str] | pa.ChunkedArray | None) -> pa.Table:
    """The rows that have none of these texts in a column; None: no row counts, for all are about another cluster."""
    if values is None:
        return rows.slice(0, 0)
    texts = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else pa.array(values, pa.string())
    return rows.filter(pc.invert(pc.is_in(rows[column], value_set=texts)))


def of_cluster(cluster: str, rows: pa.Table) -> pa.Table:
    """The rows with the cluster's name."""
    return rows.append_column("cluster", pa.repeat(pa.scalar(cluster, pa.string()), rows.num_rows))


def remembered_topics(stored: pa.Table, *, at_ms: int, keep_days: int) -> pa.Table:
    """Drop stored rows of partitions that were deleted some days ago, because topics come and go."""
    oldest = moment(at_ms - keep_days * _DAY_MS)
    return stored.filter(pc.fill_null(pc.greater_equal(stored["deleted_at"], oldest), True))
