"""Fold: the log offsets that are stored, and those that the brokers have answered."""

import pyarrow as pa

from pipeline.row_keys import PARTITION_KEY, codes, key_columns, matched, struct, taken

_ANSWER = (
    *("topic_id", "log_start_offset", "log_end_offset", "last_stable_offset", "isolation", "observed_at_ms"),
    "error",
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
