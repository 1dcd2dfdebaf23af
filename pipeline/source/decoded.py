"""Source: decoded rows in tables that have only the columns which their kinds of rows fill."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from pipeline.arrow_stream import packed, unpacked
from pipeline.decode.groups import GROUP_COLUMNS
from pipeline.decode.rows import ARROW, filled
from pipeline.kafka.sources.log_offsets.ask import LOG_OFFSETS
from pipeline.row_keys import LAG_KEY, PARTITION_KEY, codes, last_of_each

_GROUP_KEY = ("group_id", "group_type")
_RECORD_KEY = ("group_id", "record_type", "record_key")
_WHERE_READ = ("offsets_partition", "position")
_COMMIT = ("committed_offset", "leader_epoch", "commit_timestamp_ms", "topic_id")
_GROUP = tuple(field.name for field in GROUP_COLUMNS if field.name not in _GROUP_KEY)
_RECORD = ("written_at_ms", "value", "error")
_ACK_KEY = ("group_id", "kind", "id")
_WAITING = 500_000
"""Rows among which the newest are looked for at least."""
_FAMILIES = (
    (("commit", "tombstone"), ("row_kind", *LAG_KEY, *_WHERE_READ, *_COMMIT)),
    (("group", "group_tombstone"), ("row_kind", *_GROUP_KEY, *_WHERE_READ, *_GROUP)),
    (("group_record", "group_record_tombstone"), ("row_kind", *_RECORD_KEY, *_WHERE_READ, *_RECORD)),
    (("log_offset",), ("row_kind", *LOG_OFFSETS.names)),
    (("group_listing", "listed", "asked"), ("row_kind", "group_id", "error")),
    (("ack",), ("row_kind", "group_id", "position", "ack")),
)
"""Kinds of rows that may be many, and the columns that they fill."""
_SCHEMAS = (*(pa.schema([ARROW.field(name) for name in names]) for _, names in _FAMILIES), ARROW)
_LOG_ENDS = 3
_ROWS_A_BATCH = 50_000
"""Rows that go to Spark, which unpacks a batch of Arrow at once."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded rows (`decode.rows`)."""

    tables: tuple[pa.Table, ...] = tuple(schema.empty_table() for schema in _SCHEMAS)
    """Commits, groups, records of KIP-848 groups, log offsets, groups that were listed or asked for, acks, others."""

    def kind(self, *kinds: str) -> pa.Table:
        """The rows of these kinds, which are in one of the tables."""
        rows = self.tables[_family(kinds[0])]
        return rows.filter(pc.is_in(rows["row_kind"], value_set=pa.array(kinds)))

    def newest(self) -> "Decoded":
        """Without commits, group records and acknowledgements after which there is another one of the same key.

        All records of a group are in one partition of their topic, so the later one has the higher offset.
        """
        commits, groups, records, *rest, acks, others = self.tables
        newest = (
            _newest(rows, key)
            for rows, key in ((commits, LAG_KEY), (groups, _GROUP_KEY), (records, _RECORD_KEY))
        )
        return Decoded((*newest, *rest, _newest_acks(acks), others))

    def newest_log_ends(self) -> "Decoded":
        """Keep only the newest answer for a partition whose log end several tasks asked for."""
        rows = self.tables[_LOG_ENDS]
        (of_row,) = codes(PARTITION_KEY, rows)
        if len(np.unique(of_row)) == rows.num_rows:
            return self
        is_answered = pc.is_null(rows["error"]).to_numpy()
        newest = last_of_each(of_row, is_answered, rows["observed_at_ms"].to_numpy())
        tables = list(self.tables)
        tables[_LOG_ENDS] = rows.take(pa.array(np.sort(newest)))
        return Decoded(tuple(tables))

    def n_rows(self) -> int:
        """Number of rows of all kinds."""
        return sum(rows.num_rows for rows in self.tables)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows with all columns of decoded rows, as Spark takes them."""
        for table in self.tables:
            for batch in table.combine_chunks().to_batches(max_chunksize=_ROWS_A_BATCH):
                yield filled(None, **{name: batch[name] for name in batch.schema.names})


def decoded_of(batches: Iterable[pa.RecordBatch]) -> Decoded:
    """Return the rows of `decode.rows`; each batch is of one family."""
    found: list[list[pa.RecordBatch]] = [[] for _ in _SCHEMAS]
    for batch in batches:
        if batch.num_rows:
            family = _family(batch["row_kind"][0].as_py())
            found[family].append(batch.select(_SCHEMAS[family].names))
    return Decoded(
        tuple(pa.Table.from_batches(rows, schema) for rows, schema in zip(found, _SCHEMAS, strict=True))
    )


def newest_of(batches: Iterable[pa.RecordBatch]) -> Decoded:
    """`Decoded.newest` of the rows, holding hardly more of them at a time than there are keys."""
    kept, waiting, n_waiting = Decoded(), list[Decoded](), 0
    for batch in batches:
        # The columns of other kinds, though null, would be most of what is held.
        waiting.append(decoded_of([batch]))
        n_waiting += batch.num_rows
        # As many as are kept already, so that no row is looked at more often than keys double.
        if n_waiting >= max(_WAITING, kept.n_rows()):
            kept, waiting, n_waiting = together((kept, *waiting)).newest(), [], 0
    return together((kept, *waiting)).newest()


def together(parts: Iterable[Decoded]) -> Decoded:
    """All rows of the parts."""
    each = [Decoded().tables, *(part.tables for part in parts)]
    return Decoded(tuple(pa.concat_tables(tables) for tables in zip(*each, strict=True)))


PACKED = StructType([StructField("family", IntegerType()), StructField("rows", BinaryType())])
"""Decoded rows on their way to the driver: rows of one of `Decoded.tables`, as bytes."""
_PACKED = pa.schema([("family", pa.int32()), ("rows", pa.binary())])


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack the rows as `PACKED`; runs in a task.

    Spark sets aside room in every column for every row, null or not: half a kilobyte for a commit, of which it holds
    several copies on the driver. Packed it is 30 to 80 bytes.
    """
    for batch in batches:
        for family, rows in enumerate(of_rows(pa.Table.from_batches([batch])).tables):
            if rows.num_rows:
                yield pa.RecordBatch.from_pydict({"family": [family], "rows": [packed(rows)]}, _PACKED)


def unpack(given: pa.Table) -> Decoded:
    """The rows that tasks have packed."""
    tables = [[schema.empty_table()] for schema in _SCHEMAS]
    for family, rows in zip(given["family"].to_pylist(), given["rows"], strict=True):
        tables[family].append(unpacked(rows))
    return Decoded(tuple(map(pa.concat_tables, tables)))


def of_rows(rows: pa.Table) -> Decoded:
    """Split Spark's rows by kind, each with only its own columns."""
    tables = []
    for number, schema in enumerate(_SCHEMAS):
        kinds = [kind for kinds, _ in (_FAMILIES[number : number + 1] or _FAMILIES) for kind in kinds]
        is_of = pc.is_in(rows["row_kind"], value_set=pa.array(kinds))
        wanted = is_of if number < len(_FAMILIES) else pc.invert(is_of)
        tables.append(rows.select(schema.names).filter(wanted).cast(schema))
    return Decoded(tuple(tables))


def _family(kind: str) -> int:
    return next((number for number, (kinds, _) in enumerate(_FAMILIES) if kind in kinds), len(_FAMILIES))


def _newest(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    (of_row,) = codes(key, rows)
    newest = last_of_each(of_row, rows["position"].to_numpy(), rows["offsets_partition"].to_numpy())
    return rows.take(pa.array(np.sort(newest)))


def _newest_acks(rows: pa.Table) -> pa.Table:
    # By the key and the order of `fold_acks`. A member may write one without end, and all would reach the driver.
    key = {name: pc.struct_field(rows["ack"], name) for name in _ACK_KEY if name != "group_id"}
    (of_row,) = codes(_ACK_KEY, pa.table({"group_id": rows["group_id"], **key}))
    return rows.take(pa.array(np.sort(last_of_each(of_row, rows["position"].to_numpy()))))
