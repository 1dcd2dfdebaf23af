"""Findings about the files of the tables: files in the logs that no longer exist, or not in full."""

from collections.abc import Iterator
from posixpath import basename

from pyarrow.fs import FileSelector, FileType

from pipeline.errors import MissingTableError, StoreError
from pipeline.operate.doctor.evidence import StreamEvidence
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.output import plain
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.table_files import files_of, line_of
from pipeline.tables.upkeep.backup import ORDER


def gone_files(stream: StreamEvidence) -> Iterator[Finding]:
    """One finding for each table that cannot be read because a file is missing or damaged."""
    for name in ORDER:
        try:
            gone = _gone(stream.tables, stream.tables.open(name))
        except MissingTableError:
            continue
        if gone:
            figures = Figures(question="tables", source=name, as_of=stream.as_of, object=name)
            yield figures.finding(
                "problem",
                f"{len(gone)} file(s) of table {name} are gone or cut short, and nothing else holds their rows: "
                f"{named([plain(file) for file in gone])}",
                "find out what deletes or damages files there (a power failure can); stop the stream, restore the "
                "folder of this table from a backup, or move it away, and start the stream again, which fills it with "
                "what Kafka still has",
            )


def _gone(tables: Tables, table: OpenTable) -> list[str]:
    """Names of the files that the newest version needs and that are missing, or have another size than when written.

    Raises:
        StoreError: The folder cannot be read.
    """
    try:
        found = tables.folder(table.name).get_file_info(FileSelector("", recursive=True))
    except OSError as error:
        raise StoreError(f"the folder of table {table.name} cannot be read: {line_of(error)}") from error
    there = {basename(one.path): one.size for one in found if one.type == FileType.File}
    return [
        basename(path)
        for path, size, _ in files_of(table.name, table.handle).files
        if (present := there.get(basename(path))) is None or size not in (None, present)
    ]
