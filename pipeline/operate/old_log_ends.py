"""Old log end offsets, which no broker has reported for a while: which rows have one.

While a broker does not answer, the last log end stays in the table with its time. The lag that follows from it is
at best a lower bound of the true one, so it must not look like a fresh one.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.model import Config

IS_OLD = "is_old"
"""Column of `with_is_old`."""

_BATCHES_UNTIL_OLD = 3


def limit_of(config: Config) -> timedelta:
    """How much older than its row a log end may be: three triggers, or what plans tolerate, whichever is more."""
    return timedelta(seconds=max(_BATCHES_UNTIL_OLD * config.trigger.interval_s, config.plan.max_staleness_s))


def with_is_old(rows: pa.Table, limit: timedelta) -> pa.Table:
    """Rows of `partition_lag` or `lag_history`, with a column that says whether their log end is older than `limit`.

    The log end of a deleted topic is no longer asked for, so it never counts as old.
    """
    age = pc.subtract(rows["updated_at"], rows["log_observed_at"])
    is_old = pc.and_(pc.greater(age, pa.scalar(limit, age.type)), pc.not_equal(rows["status"], "DELETED"))
    return rows.append_column(IS_OLD, pc.fill_null(is_old, fill_value=False))


def is_age_open(row: Mapping[str, Any]) -> bool:
    """True if an age of 0 may be too low, because the group has read up to an old log end.

    With lag, the next record to be read is known, so its age does not depend on the log end.

    Args:
        row: A row as returned by `with_is_old`.
    """
    return bool(row[IS_OLD]) and row["lag"] == 0


def are_ages_open(rows: pa.Table) -> pa.ChunkedArray:
    """`is_age_open` of each row."""
    return pc.and_(rows[IS_OLD], pc.fill_null(pc.equal(rows["lag"], 0), fill_value=False))
