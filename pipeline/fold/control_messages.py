"""Fold: the newest acknowledgements and orders, and the partitions that followers have handed over.

Records of one key are in one partition of their topic, so their offsets order them; hand-overs have a number each.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from assignor.model.arrays import Int64s
from pipeline.arrow_columns import bools
from pipeline.row_keys import NO_ROW, codes, last_of_each, looked_up, taken
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import ACKS, ORDERS

_OF_THE_BATCH = {"cluster", "updated_at", "batch_id"}


def _folded(schema: StructType) -> pa.Schema:
    # What a record took back is null but for its key.
    return pa.schema(
        [field.with_nullable(True) for field in arrow_schema(schema) if field.name not in _OF_THE_BATCH]
    )


_ACKS, _ORDERS = _folded(ACKS), _folded(ORDERS)

_KEPT_S = 7 * 86_400
"""Retention of control messages of an unknown group, which may be new or deleted; Kafka's default."""
_MOST_OF_A_GROUP = 50_000
"""Limit for hand-overs, two per partition moved in the generation, and for all others, one per member and kind."""
_TAKEN = "taken"
_HAND_OVERS = ("release", _TAKEN)
HANDED_OVER = pa.schema(
    [("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("member_id", pa.string())]
)


def fold_acks(stored: pa.Table, events: pa.Table, groups: pa.Table, *, at_ms: int) -> pa.Table:
    """The newest acknowledgement of each kind by each member, or about each partition.

    Acknowledgements of a generation that is over do not count: Kafka has assigned every partition again.

    Args:
        stored: `schemas.ACKS`; empty under a new checkpoint, which reads the topic from its beginning.
        events: Decoded rows of kind 'ack'.
        groups: `schemas.CONSUMER_GROUPS`.
        at_ms: Clock of the batch.
    """
    rows = _newest(("group_id", "kind", "id"), stored, _named(events, "ack", _ACKS))
    rows = rows.filter(pc.is_valid(rows["generation"]))
    own, present = codes(("group_id",), rows, groups)
    generation = taken(groups["generation"].combine_chunks(), looked_up(own, present))
    # Its writer has set the time.
    age_us = pc.abs(pc.subtract(at_ms * 1000, rows["acked_at"].cast(pa.int64())))
    # A generation may last for months, and a hand-over holds as long.
    counts = pc.if_else(
        pc.is_null(generation),
        pc.less(age_us, _KEPT_S * 1_000_000),
        pc.greater_equal(rows["generation"], generation),
    )
    # All unknown groups share their room.
    of = np.where(looked_up(own, present) == NO_ROW, -1, own)[bools(counts.combine_chunks())]
    return _newest_of_each(rows.filter(counts), of)


def _newest_of_each(rows: pa.Table, group: Int64s) -> pa.Table:
    """At most `_MOST_OF_A_GROUP` of each group: who writes without end must not fill the table.

    Args:
        rows: Acknowledgements.
        group: Number of the group, by row.
    """
    # Others must not displace hand-overs, which say where partitions are.
    own = 2 * group + bools(_is_hand_over(rows).combine_chunks())
    order = np.lexsort((-rows["position"].to_numpy(), own))
    begins = np.flatnonzero(np.diff(own[order], prepend=own.min(initial=0) - 1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return rows.take(pa.array(np.sort(order[rank < _MOST_OF_A_GROUP])))


def fold_orders(stored: pa.Table, events: pa.Table) -> pa.Table:
    """The standing orders of each group.

    Args:
        stored: `schemas.ORDERS`; empty under a new checkpoint.
        events: Decoded rows of kind 'orders'.
    """
    rows = _newest(("group_id",), stored, _named(events, "orders", _ORDERS))
    return rows.filter(pc.is_valid(rows["paused"]))


def _named(events: pa.Table, struct: str, schema: pa.Schema) -> pa.Table:
    """The fields of a struct as columns, with group and position."""
    given = events[struct].combine_chunks()
    names = [name for name in schema.names if name not in {"group_id", "position"}]
    columns = {name: pc.struct_field(given, name) for name in names}
    return (
        pa.table({**columns, "group_id": events["group_id"], "position": events["position"]})
        .select(schema.names)
        .cast(schema)
    )


def _newest(key: Sequence[str], stored: pa.Table, new: pa.Table) -> pa.Table:
    rows = pa.concat_tables([stored.select(new.column_names).cast(new.schema), new])
    return rows.take(pa.array(last_of_each(*codes(key, rows), rows["position"].to_numpy())))


def handed_over(acks: pa.Table, groups: pa.Table) -> pa.Table:
    """Return one row of `HANDED_OVER` per partition that has left its owner within the present generation, sorted.

    `member_id` is its new owner; null during the hand-over, when no member reads it. Acknowledgements of members
    outside the generation belong to a deleted group of the same name, whose generations restarted at 1.

    Args:
        acks: `schemas.ACKS`; few enough for the driver: some for each member, and two for each partition moved since
            the rebalance.
        groups: `schemas.CONSUMER_GROUPS`.
    """
    rows = acks.filter(_is_hand_over(acks)).to_pylist()
    present = _generations(groups, {row["group_id"] for row in rows})
    newest: dict[tuple[str, str, int], tuple[tuple[int, bool], str]] = {}
    for row in rows:
        if row["member_id"] not in present.get((row["group_id"], row["generation"]), ()):
            continue
        place = row["group_id"], row["topic"], row["partition"]
        turn = row["hop"], row["kind"] == _TAKEN
        if place not in newest or turn > newest[place][0]:
            newest[place] = turn, row["member_id"]
    return pa.Table.from_pylist(
        [
            dict(zip(HANDED_OVER.names, (*place, member_id if is_taken else None), strict=True))
            for place, ((_, is_taken), member_id) in sorted(newest.items())
        ],
        schema=HANDED_OVER,
    )


def about_plans(acks: pa.Table) -> pa.Table:
    """The acknowledgements that are about a plan, and not about one partition on its way."""
    return acks.filter(pc.invert(_is_hand_over(acks)))


def _is_hand_over(acks: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(acks["kind"], value_set=pa.array(_HAND_OVERS))


def _generations(groups: pa.Table, wanted: set[str]) -> Mapping[tuple[str, int | None], set[str]]:
    """Member ids by group and generation."""
    # A group that was migrated to KIP-848 counts its epochs on from there, and nobody hands over within one.
    is_classic = pc.equal(groups["group_type"], "classic")
    those = groups.filter(
        pc.and_(is_classic, pc.is_in(groups["group_id"], value_set=pa.array(sorted(wanted), pa.string())))
    )
    return {
        (row["group_id"], row["generation"]): {member["member_id"] for member in row["members"] or ()}
        for row in those.select(["group_id", "generation", "members"]).to_pylist()
    }
