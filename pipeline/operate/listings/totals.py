"""Lag summed up per group, topic or member."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.operate.old_log_ends import IS_OLD, are_ages_open
from pipeline.operate.output import Column, Row, plain

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
AT_LEAST, AT_MOST = ">", "<"
"""Signs before a figure that would be larger, or smaller, if all were known."""


def has_more_lag(row: Row) -> bool:
    """Whether `lag` and `max_lag` of a total are lower bounds: some partition has an unknown or an old lag."""
    return bool(row["unknown_lag"] or row["old_lag"])


def _bound(name: str, sign: str, header: str, is_bound: Callable[[Row], object]) -> Column:
    def cell(row: Row) -> str:
        return f"{sign if row[name] is not None and is_bound(row) else ''}{plain(row[name])}"

    return Column(header=header, name=name, cell=cell, is_number=True)


_SUMS = (
    Column(header="PARTITIONS", name="partitions", is_number=True),
    _bound("lag", AT_LEAST, "LAG", has_more_lag),
    _bound("lag_at_commit", AT_LEAST, "AT-COMMIT", itemgetter("unknown_lag_at_commit")),
    Column(header="UNKNOWN", name="unknown_lag", is_number=True),
    Column(header="OLD", name="old_lag", is_number=True),
    _bound("max_lag", AT_LEAST, "MAX-LAG", has_more_lag),
    _bound("lag_seconds", AT_LEAST, "LAG-SECONDS", itemgetter("lag_seconds_is_lower_bound")),
    _bound("growing", AT_LEAST, "GROWING", itemgetter("unknown_trend")),
    _bound("retention_seconds", AT_MOST, "RETENTION-S", itemgetter("unknown_retention")),
    Column(header="LOWER-BOUND", name="lag_seconds_is_lower_bound", is_wide=True),
    Column(header="UNKNOWN-AT-COMMIT", name="unknown_lag_at_commit", is_number=True, is_wide=True),
    Column(header="UNKNOWN-SECONDS", name="unknown_lag_seconds", is_number=True, is_wide=True),
    Column(header="UNKNOWN-TREND", name="unknown_trend", is_number=True, is_wide=True),
    Column(header="UNKNOWN-RETENTION", name="unknown_retention", is_number=True, is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
RATES = ("arrival_rate", "drain_rate")
"""Records/s."""
_UNKNOWN = pc.CountOptions(mode="only_null")
_AGGREGATES: Mapping[str, tuple[Any, ...]] = {
    "partitions": ("partition", "count"),
    "lag": ("lag", "sum"),
    "unknown_lag": ("lag", "count", _UNKNOWN),
    "lag_at_commit": ("lag_at_commit", "sum"),
    "unknown_lag_at_commit": ("lag_at_commit", "count", _UNKNOWN),
    "old_lag": ("is_old", "sum"),
    "max_lag": ("lag", "max"),
    "lag_seconds": ("lag_seconds", "max"),
    "lag_seconds_is_lower_bound": ("is_bound", "any"),
    "unknown_lag_seconds": ("lag_seconds", "count", _UNKNOWN),
    "growing": ("is_growing", "sum"),
    "unknown_trend": ("is_growing", "count", _UNKNOWN),
    "retention_seconds": ("retention_seconds", "min"),
    "unknown_retention": ("has_unknown_retention", "sum"),
    "provisional": ("provisional", "sum"),
    **{name: (name, "sum") for name in RATES},
    **{f"unknown_{name}": (name, "count", _UNKNOWN) for name in RATES},
}
"""Figures of a total: column and aggregation."""


def totals(rows: pa.Table, *, by: TotalBy) -> tuple[pa.Table, tuple[Column, ...]]:
    """One row per group, per topic of a group or per member of a group, and the columns that show it.

    Figures cover the partitions where they are known, and are null where none is. `lag` and `lag_at_commit` are
    their sums, `max_lag` and `lag_seconds` the largest, `retention_seconds` the least, `growing` how many have that
    trend. `unknown_…` count the others; `old_lag` those marked as old (`with_is_old`). A sum of rates is null if one of
    them is unknown.
    `lag_seconds_is_lower_bound`: some partition may have an older record. Partitions without unread records have no
    time until such are deleted. Unowned partitions are summed up under a member of null.
    """
    keys = list(_KEYS[by])
    summed = _prepared(rows).group_by(keys).aggregate(list(_AGGREGATES.values()))
    shown = tuple(Column(header=_HEADERS[key], name=key) for key in keys if key in _HEADERS)
    return _with_sound_rates(summed.rename_columns([*keys, *_AGGREGATES])), (*shown, *_SUMS)


def _with_sound_rates(summed: pa.Table) -> pa.Table:
    for name in RATES:
        is_known = pc.equal(summed[f"unknown_{name}"], 0)
        place = summed.column_names.index(name)
        summed = summed.set_column(place, name, pc.if_else(is_known, summed[name], None))
    return summed.drop_columns([f"unknown_{name}" for name in RATES])


def _prepared(rows: pa.Table) -> pa.Table:
    """The rows with additional columns for the sums."""
    has_more_seconds = pc.or_kleene(
        pc.or_(rows["lag_seconds"].is_null(), are_ages_open(rows)), rows["lag_seconds_is_lower_bound"]
    )
    columns = {
        "is_growing": pc.equal(rows["trend"].cast(pa.string()), "growing"),
        "is_bound": pc.fill_null(has_more_seconds, fill_value=False),
        "has_unknown_retention": pc.and_(rows["retention_seconds"].is_null(), may_have_unread(rows)),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def may_have_unread(rows: pa.Table) -> pa.ChunkedArray:
    """True for each row, as returned by `with_is_old`, that has or may have unread records, which Kafka may delete."""
    return pc.or_(pc.fill_null(pc.not_equal(rows["lag"], 0), fill_value=True), rows[IS_OLD])
