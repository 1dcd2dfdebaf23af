"""Lag summed up per group, topic or member."""

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.operate.output import Column

TotalBy = Literal["group", "topic", "member"]

_KEYS = {
    "group": ("cluster", "group_id"),
    "topic": ("cluster", "group_id", "topic"),
    "member": ("cluster", "group_id", "member_id", "client_id", "client_host"),
}
_HEADERS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "member_id": "CONSUMER-ID",
    "client_id": "CLIENT-ID",
    "client_host": "HOST",
}
_SUMS = (
    Column(header="PARTITIONS", name="partitions", is_number=True),
    Column(header="LAG", name="lag", is_number=True),
    Column(header="UNKNOWN", name="unknown_lag", is_number=True),
    Column(header="OLD", name="old_lag", is_number=True),
    Column(header="MAX-LAG", name="max_lag", is_number=True),
    Column(header="LAG-SECONDS", name="lag_seconds", is_number=True),
    Column(header="GROWING", name="growing", is_number=True),
    Column(header="RETENTION-S", name="retention_seconds", is_number=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)


def totals(rows: pa.Table, *, by: TotalBy) -> tuple[pa.Table, tuple[Column, ...]]:
    """One row per group, per topic of a group or per member of a group, and the columns that show it.

    `lag` sums the partitions whose lag is known and is null when none is; `unknown_lag` counts the others,
    `old_lag` those that are marked as old (`with_is_old`). `lag_seconds` is the largest, `retention_seconds` the least;
    `growing` counts the partitions whose trend that is, and is null when no trend is known.
    Partitions that nobody owns add up in a member of null.
    """
    keys = list(_KEYS[by])
    is_growing = pc.equal(rows["trend"].cast(pa.string()), "growing")
    grouped = (
        rows.append_column("is_growing", is_growing)
        .group_by(keys)
        .aggregate(
            [
                ("partition", "count"),
                ("lag", "sum"),
                ("lag", "count", pc.CountOptions(mode="only_null")),
                ("is_old", "sum"),
                ("lag", "max"),
                ("lag_seconds", "max"),
                ("is_growing", "sum"),
                ("retention_seconds", "min"),
            ]
        )
    )
    summed = grouped.rename_columns(
        [
            *(*keys, "partitions", "lag", "unknown_lag", "old_lag"),
            *("max_lag", "lag_seconds", "growing", "retention_seconds"),
        ]
    )
    shown = tuple(Column(header=_HEADERS[key], name=key) for key in keys if key in _HEADERS)
    return summed, (*shown, *_SUMS)
