"""Findings about the files of the tables: files in the logs that no longer exist, or are damaged."""

from collections.abc import Iterator
from posixpath import basename

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSelector, FileType

from pipeline.errors import DamagedLogError, MissingTableError, StoreError
from pipeline.operate.doctor.evidence import StreamEvidence
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.output import plain
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.table_files import files_of, is_damage, line_of
from pipeline.tables.upkeep.backup import ORDER


def gone_files(stream: StreamEvidence) -> Iterator[Finding]:
    """One finding for each table that cannot be read because a file is missing or damaged, or its log is."""
    for name in ORDER:
        cause = _cause(stream.tables, name)
        if cause is not None:
            figures = Figures(question="tables", source=name, as_of=stream.as_of, object=name)
            yield figures.finding(
                "problem",
                cause,
                "find out what deletes or damages files there (a power failure can); stop the stream, restore the "
                "folder of this table from a backup, or move it away, and start the stream again, which fills it with "
                "what Kafka still has",
            )


def _cause(tables: Tables, name: str) -> str | None:
    try:
        gone = _gone(tables, tables.open(name))
    except MissingTableError:
        return None
    except DamagedLogError:
        return f"the log of table {name} is damaged, so nothing can read the table"
    return (
        f"{len(gone)} file(s) of table {name} are gone or damaged, and nothing else holds their rows: "
        f"{named([plain(file) for file in gone])}"
        if gone
        else None
    )


def _gone(tables: Tables, table: OpenTable) -> list[str]:
    """Names of the files that the newest version needs and that are missing, or damaged as far as size and footer show.

    Raises:
        StoreError: The folder or a file cannot be read.
    """
    try:
        found = tables.folder(table.name).get_file_info(FileSelector("", recursive=True))
    except OSError as error:
        raise StoreError(f"the folder of table {table.name} cannot be read: {line_of(error)}") from error
    there = {basename(one.path): one.size for one in found if one.type == FileType.File}
    gone = [
        basename(path)
        for path, size, _ in files_of(table.name, table.handle).files
        if (present := there.get(basename(path))) is None or size not in (None, present)
    ]
    whole = (one for one in table.dataset().get_fragments() if basename(one.path) not in gone)
    return [*gone, *(basename(one.path) for one in whole if _is_damaged(table.name, one))]


def _is_damaged(name: str, file: ds.ParquetFileFragment) -> bool:
    try:
        # Reads the footer; a power failure leaves zeros there, at the size that was written.
        file.ensure_complete_metadata()
    except (OSError, pa.ArrowException) as error:
        if is_damage(error):
            return True
        raise StoreError(f"file {file.path} of table {name} cannot be read: {line_of(error)}") from None
    return False
