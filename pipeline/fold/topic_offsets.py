"""Fold: the log offsets that are stored, and those that the brokers have answered."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.row_keys import PARTITION_KEY, codes, key_columns, matched, struct, taken

_ANSWER = (
    *("topic_id", "log_start_offset", "log_end_offset", "isolation", "observed_at_ms", "error"),
    *("leader_broker", "preferred_leader", "replicas", "in_sync_replicas"),
)


def fold_topic_offsets(stored: pa.Table, observed: pa.Table) -> pa.Table:
    """Each known partition with what is stored (`old`) and what was observed now (`new`); either may be null.

    Args:
        stored: `schemas.TOPIC_OFFSETS`.
        observed: Decoded rows of kind 'log_offset'.
    """
    tables = stored, observed
    rows = old, new = matched(*codes(PARTITION_KEY, *tables))
    columns = key_columns(PARTITION_KEY, tables, rows)
    columns["old"] = taken(struct(stored, stored.column_names), old)
    columns["new"] = taken(struct(observed, _ANSWER), new)
    return pa.table(columns)


def missing_topics(stored: pa.Table, observed: pa.Table) -> list[str]:
    """Topics of which a partition is stored that is not deleted, and was not observed.

    Args:
        stored: `deleted_at` and the key of `schemas.TOPIC_OFFSETS`.
        observed: The key of decoded rows of kind 'log_offset'.
    """
    alive = stored.filter(pc.is_null(stored["deleted_at"]))
    known, seen = codes(PARTITION_KEY, alive, observed)
    missing = alive.filter(pa.array(~np.isin(known, seen)))
    return sorted(missing["topic"].unique().to_pylist())
