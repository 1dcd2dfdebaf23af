"""Store: the files of one version of a table, which are all that a reader of its rows has to know.

Files never change. Who has these entries reads the version that they belong to, without the table's log: the driver
sends them to its tasks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import repeat
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import LocalFileSystem

from pipeline.errors import DamagedLogError, StoreError, without_queries
from pipeline.tables.filesystem import files_at

_INSTEAD = "stop the stream, and restore this table's folder from a backup, or move it away"

UNSUPPORTED = (
    "another program has given it a property or feature that lagwise does not support: unset the property (ALTER TABLE "
    f"… UNSET TBLPROPERTIES); a feature stays once it is there, so {_INSTEAD}"
)
"""Cause and remedy, for messages about a table."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""delta-rs colours its messages, for terminals that it does not look for."""

_OF_DAMAGE = re.compile(r"Parquet magic bytes|Parquet file size is|deserialize thrift|Corrupt snappy")
"""Arrow's words for bytes that are no Parquet file; it has no class of errors for them."""

_OF_LOG_DAMAGE = re.compile(r"Json error|Invalid Checkpoint|Parquet error|but found gap")
_STACK = re.compile(r"\s+0: .*|: ParsedLogPath .*", re.DOTALL)
"""delta-rs appends its stack to some messages, a frame a line, or what it knows of the log's files."""

_OF_CONFLICT = re.compile("Failed to commit transaction")
"""delta-rs's words for a commit that another one has come before, also where a store does not show that one yet."""


class DataFile(NamedTuple):
    """Entry for a file of a table."""

    path: str
    """Relative to the table's folder."""
    size: int | None
    """In bytes; a store is not asked for a size that is given."""
    holds: pc.Expression
    """Condition that all its rows meet, from partition and statistics: files without a wanted row are not read."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one version of a table. Can be pickled; holds no secret."""

    name: str
    uri: str
    schema: pa.Schema
    files: tuple[DataFile, ...]


def files_of(name: str, handle: DeltaTable) -> TableFiles:
    """Return the files of the version that the handle is at, without a request.

    Raises:
        StoreError: Another program has given the table features that lagwise does not read.
    """
    refuse_deletion_vectors(name, handle)
    try:
        # Only for the schema and the check of features, so without files.
        schema = handle.to_pyarrow_dataset(
            filesystem=LocalFileSystem(), file_pruning_predicate="false"
        ).schema
    except DeltaError as error:
        raise StoreError(
            f"table {name} at {handle.table_uri} cannot be read: {line_of(error)}; {UNSUPPORTED}"
        ) from error
    added = pa.table(handle.get_add_actions(flatten=True))
    # The log has them encoded.
    paths, sizes = [unquote(path) for path in added["path"].to_pylist()], added["size_bytes"].to_pylist()
    files = (DataFile(*one) for one in zip(paths, sizes, _held(added), strict=True))
    return TableFiles(name, handle.table_uri, schema, tuple(files))


def is_conflict(error: Exception) -> bool:
    """Return whether a commit was refused because another one has come before it."""
    return _OF_CONFLICT.search(str(error)) is not None


def refuse_deletion_vectors(name: str, handle: DeltaTable) -> None:
    """Return if table `name` cannot have deletion vectors.

    delta-rs does not report their files: a backup would lack them, and maintenance would delete them.

    Raises:
        StoreError: It can have some.
    """
    if "deletionVectors" in (handle.protocol().reader_features or ()):
        raise StoreError(
            f"table {name} at {handle.table_uri} may have deletion vectors, which lagwise does not keep; a feature "
            f"stays once it is there, so {_INSTEAD}"
        )


def _held(added: pa.Table) -> list[pc.Expression]:
    """`DataFile.holds` of each file.

    A column without a known span says nothing. deltalake's own expressions compare it with null, which no row meets,
    and every filter on that column would pass over the file.
    """
    held = [pc.scalar(True)] * added.num_rows
    # Where a condition on the partition comes first, Arrow chooses files many times as fast.
    for name in sorted(added.column_names, key=lambda one: not one.startswith("partition.")):
        kind, _, column = name.partition(".")
        if kind == "partition":
            conditions: Iterable[pc.Expression | None] = [
                _is(column, value) for value in added[name].to_pylist()
            ]
        elif kind == "min" and "." not in column:
            conditions = _within(column, added)
        else:
            continue
        held = [
            one if condition is None else one & condition
            for one, condition in zip(held, conditions, strict=True)
        ]
    return held


def _is(column: str, value: object) -> pc.Expression:
    return pc.field(column).is_null() if value is None else pc.field(column) == value


def _within(column: str, added: pa.Table) -> Iterator[pc.Expression | None]:
    field, is_null = pc.field(column), pc.field(column).is_null()
    spans = (
        added[f"{kind}.{column}"].to_pylist() if f"{kind}.{column}" in added.column_names else repeat(None)
        for kind in ("min", "max", "null_count")
    )
    for least, greatest, nulls in zip(*spans, strict=False):
        # Statistics round decimals, and leave NaN out.
        if least is None or greatest is None or isinstance(least, float | Decimal):
            yield None
            continue
        # They cut times to milliseconds.
        most = greatest + timedelta(milliseconds=1) if isinstance(greatest, datetime) else greatest
        if nulls == 0:
            yield (field >= least) & (field <= most)
        else:
            # Arrow passes over files by this form alone, not by (≥ and ≤) or null.
            yield ((field >= least) | is_null) & ((field <= most) | is_null)


class TableRows:
    """Rows of one version of a table. Files are opened when they are read first, and their footers kept."""

    def __init__(self, table: TableFiles, storage_options: Mapping[str, str]) -> None:
        """Nothing is read yet.

        Args:
            table: Version of the table.
            storage_options: Of delta-rs, secrets resolved.
        """
        self._table = table
        place = files_at(table.uri, storage_options)
        parquet = ds.ParquetFileFormat(
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
        )
        fragments = [
            parquet.make_fragment(
                one.path, filesystem=place, partition_expression=one.holds, file_size=one.size
            )
            for one in table.files
        ]
        self.dataset: ds.Dataset = ds.FileSystemDataset(fragments, table.schema, parquet, place)
        """The table to be read piece by piece."""

    def read(self, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Return the rows for which `where` holds, in no particular order.

        A column that the table lacks, because an older lagwise wrote it, is null in every row.

        Raises:
            StoreError: It cannot be read.
        """
        present = set(self._table.schema.names)
        try:
            rows = self.dataset.to_table(
                columns=[column for column in columns if column in present], filter=where
            )
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from None
        for column in columns:
            if column not in present:
                rows = rows.append_column(column, pa.nulls(rows.num_rows))
        return rows.select(list(columns))

    def count(self, where: pc.Expression | None = None) -> int:
        """Count the rows for which `where` holds.

        Raises:
            StoreError: It cannot be read.
        """
        try:
            return int(self.dataset.count_rows(filter=where))
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> StoreError:
        # Raised without its cause: the trace that Spark logs for a task would have the whole URL.
        remedy = f"; a file of the table is damaged: {_INSTEAD}" if is_damage(error) else ""
        return StoreError(
            f"table {self._table.name} at {self._table.uri} cannot be read: {line_of(error)}{remedy}"
        )


@dataclass(frozen=True, slots=True)
class SentTables:
    """Versions of tables that the driver has chosen for a batch; tasks read no others (`reading.Readable`)."""

    tables: Mapping[str, TableFiles]
    storage_options: Mapping[str, str]
    """Options of delta-rs, secrets resolved."""

    def read(self, name: str, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Read table `name` as `TableRows.read` does."""
        return TableRows(self.tables[name], self.storage_options).read(columns=columns, where=where)


def is_damage(error: Exception) -> bool:
    """True if Arrow reports a damaged Parquet file, not a failure to read it."""
    return bool(_OF_DAMAGE.search(str(error)))


def unopened(name: str, uri: str, error: Exception) -> StoreError:
    """Return the error for a table that cannot be opened: `DamagedLogError` if its log is damaged."""
    said = f"table {name} at {uri} cannot be opened: {line_of(error)}"
    if _OF_LOG_DAMAGE.search(str(error)):
        return DamagedLogError(f"{said}; the log of the table is damaged: {_INSTEAD}")
    return StoreError(said)


def line_of(error: Exception) -> str:
    """The words of delta-rs or Arrow in one line, without bytes of files that no log can take."""
    text = _STACK.sub("", _ESCAPES.sub("", str(error))).replace("\0", r"\0")
    return " ".join(without_queries(text).split())
