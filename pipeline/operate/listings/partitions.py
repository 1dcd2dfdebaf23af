"""Lag of partitions, as `lagwise lag` lists it: columns and order."""

from typing import Literal

import pyarrow as pa

from pipeline.operate.listings.old_offsets import OLD, old_cell
from pipeline.operate.old_log_ends import is_age_open
from pipeline.operate.output import Column, Row, plain

_KEY = ("group_id", "topic", "partition", "member_id", "client_id", "client_host", "cluster")
_ORDERS = {
    "group": ("group_id", "ascending"),
    "topic": ("topic", "ascending"),
    "lag": ("lag", "descending"),
    "lag_seconds": ("lag_seconds", "descending"),
}

SortKey = Literal["group", "topic", "lag", "lag_seconds"]


def seconds_cell(row: Row) -> str:
    """`lag_seconds`, with `>` before it if it is only a lower bound, and `~` if only an old log end makes it 0."""
    if is_age_open(row):
        return f"{OLD}{plain(row['lag_seconds'])}"
    bound = ">" if row["lag_seconds_is_lower_bound"] else ""
    return f"{bound}{plain(row['lag_seconds'])}"


def _status_cell(row: Row) -> str:
    return f"{row['status']}{'*' if row['provisional'] else ''}"


MEASURES = (
    Column(header="CURRENT-OFFSET", name="committed_offset", is_number=True),
    Column(header="LOG-END-OFFSET", name="log_end_offset", cell=old_cell("log_end_offset"), is_number=True),
    Column(header="LAG", name="lag", cell=old_cell("lag"), is_number=True),
    Column(header="AT-COMMIT", name="lag_at_commit", is_number=True),
    Column(header="CONSUMER-ID", name="member_id"),
    Column(header="HOST", name="client_host"),
    Column(header="CLIENT-ID", name="client_id"),
    Column(header="STATUS", name="status", cell=_status_cell),
    Column(header="LAG-SECONDS", name="lag_seconds", cell=seconds_cell, is_number=True),
    Column(header="RAW-LAG", name="raw_lag", is_number=True, is_wide=True),
    Column(header="LOG-START-OFFSET", name="log_start_offset", is_number=True, is_wide=True),
    Column(header="ISOLATION", name="isolation", is_wide=True),
    Column(header="ARRIVAL/S", name="arrival_rate", is_number=True, is_wide=True),
    Column(header="DRAIN/S", name="drain_rate", is_number=True, is_wide=True),
    Column(header="ASSIGNED", name="assigned", is_wide=True),
    Column(header="INSTANCE-ID", name="group_instance_id", is_wide=True),
    Column(header="GENERATION", name="generation", is_number=True, is_wide=True),
    Column(header="COMMITTED-AT", name="commit_timestamp", is_wide=True),
    Column(header="LOG-OBSERVED-AT", name="log_observed_at", is_wide=True),
    Column(header="LOWER-BOUND", name="lag_seconds_is_lower_bound", is_wide=True),
    Column(header="PROVISIONAL", name="provisional", is_wide=True),
    Column(header="UPDATED-AT", name="updated_at", is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
"""Columns that `partition_lag` and `lag_history` share, for rows `with_is_old`."""

PARTITION = (
    Column(header="GROUP", name="group_id"),
    Column(header="TOPIC", name="topic"),
    Column(header="PARTITION", name="partition", is_number=True),
)
_OUTLOOK = (
    Column(header="TREND", name="trend"),
    Column(header="RETENTION-S", name="retention_seconds", is_number=True),
    Column(header="TREND-LAG", name="trend_lag", is_number=True, is_wide=True),
    Column(header="TREND-AT", name="trend_at", is_wide=True),
    Column(header="COMMIT-INTERVAL-S", name="commit_interval_seconds", is_number=True, is_wide=True),
    Column(header="COMMIT-RATE", name="commit_rate", is_number=True, is_wide=True),
    Column(header="COMMIT-SPAN-S", name="commit_span_seconds", is_number=True, is_wide=True),
    Column(header="LEAST-AT-COMMIT", name="least_lag_at_commit", is_number=True, is_wide=True),
    Column(header="UNCONFIRMED", name="unconfirmed_reason", is_wide=True),
)
"""Columns of `partition_lag` alone."""
COLUMNS = (*PARTITION, *MEASURES, *_OUTLOOK)
"""Columns of `lagwise lag`."""


def ordered(rows: pa.Table, *, key: SortKey) -> pa.Table:
    """`rows` by `key` (numbers descending, null last), then by the columns that identify a row."""
    first, way = _ORDERS[key]
    rest = [name for name in _KEY if name in rows.column_names and name != first]
    keys = [(first, way)] if first in rows.column_names else []
    return rows.sort_by([*keys, *((name, "ascending") for name in rest)])
