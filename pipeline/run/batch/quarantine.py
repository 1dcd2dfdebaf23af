"""The step of quarantine: what could not be decoded, once each, and only as much an hour as keeps the table small."""

import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.decode.bounded import LEFT_OUT, Bounded
from pipeline.row_keys import codes
from pipeline.run.batch.intake import Settled
from pipeline.tables.store import Store

log = logging.getLogger(__name__)

MOST_ROWS_AN_HOUR, MOST_BYTES_AN_HOUR = 1_000, 4 * 2**20
"""At most 720,000 rows and 3 GB in 30 days, whatever is written into the topics."""
_HOUR_MS = 3_600_000
_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value", "kind", "reason")


def store_quarantine(batch: Settled) -> None:
    """Store undecodable records up to the limit, and one row with the number of the rest."""
    if not batch.read.summary.quarantined or "quarantine" in batch.held:
        return
    bad = batch.read.decoded.kind("bad").select(_RECORD)
    unread = batch.read.summary.quarantined - bad.num_rows
    new = _not_known(batch.services.store, bad)
    kept = _room(batch.services.store, batch.stamp.at_ms).taken(_one_batch(new))
    rows = pa.Table.from_batches([kept], new.schema)
    left_out = unread + new.num_rows - rows.num_rows
    if left_out:
        log.warning(
            "a batch has more unreadable records than quarantine takes; the rest are only counted",
            extra={"quarantined": rows.num_rows, "left_out": left_out},
        )
        rows = pa.concat_tables([rows, _counted(left_out, _first_of(new, rows.num_rows, bad))])
    batch.write_measured("quarantine", rows)


def _not_known(store: Store, bad: pa.Table) -> pa.Table:
    # What is read again is not bad again; what is new lies behind all that is known, so nothing of that is looked at.
    where = pc.field("topic").isin(bad["topic"].unique()) & (pc.field("offset") >= pc.min(bad["offset"]))
    key = ["topic", "partition", "offset"]
    new, known = codes(key, bad, store.arrow("quarantine", key, where=where & (pc.field("kind") != LEFT_OUT)))
    return bad.filter(pa.array(~np.isin(new, known)))


def _room(store: Store, at_ms: int) -> Bounded:
    """What the table takes still."""
    hour = (pc.field("updated_at") > moment(at_ms - _HOUR_MS)) & (pc.field("kind") != LEFT_OUT)
    rows = store.arrow("quarantine", ["key", "value"], where=hour)
    taken = sum(pc.sum(pc.binary_length(rows[name])).as_py() or 0 for name in ("key", "value"))
    left = MOST_BYTES_AN_HOUR - taken
    # An earlier version, or a clock that went back, may have let in more than an hour's.
    return Bounded(rows=max(0, MOST_ROWS_AN_HOUR - rows.num_rows) if left > 0 else 0, bytes_=left)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in rows.columns], names=rows.column_names
    )


def _first_of(new: pa.Table, kept: int, bad: pa.Table) -> pa.Table:
    """The first record that is left out or, where the tasks have only counted them, the last one that is not."""
    return new.slice(kept, 1) if kept < new.num_rows else bad.slice(bad.num_rows - 1)


def _counted(left_out: int, first: pa.Table) -> pa.Table:
    reason = (
        f"{left_out} unreadable records of this batch are not kept: quarantine takes "
        f"{MOST_ROWS_AN_HOUR} records or {MOST_BYTES_AN_HOUR // 2**20} MiB an hour"
    )
    # Column by column: a producer may name a time after the year 9999, which no `datetime` can hold.
    for name, value in (("key", None), ("value", None), ("kind", LEFT_OUT), ("reason", reason)):
        field = first.schema.field(name)
        first = first.set_column(first.schema.get_field_index(name), field, pa.array([value], field.type))
    return first
