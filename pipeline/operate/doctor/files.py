"""Findings about the files of the tables: files in the logs that no longer exist."""

from collections.abc import Iterator
from posixpath import basename

from pyarrow.fs import FileSelector, FileType

from pipeline.errors import MissingTableError, StoreError
from pipeline.operate.doctor.evidence import StreamEvidence
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.output import plain
from pipeline.tables.reading import OpenTable, Tables
from pipeline.tables.upkeep.backup import ORDER


def gone_files(stream: StreamEvidence) -> Iterator[Finding]:
    """One finding for each table that cannot be read because a file is missing."""
    for name in ORDER:
        try:
            gone = _gone(stream.tables, stream.tables.open(name))
        except MissingTableError:
            continue
        if gone:
            figures = Figures(question="tables", source=name, as_of=stream.as_of, object=name)
            yield figures.finding(
                "problem",
                f"{len(gone)} file(s) of table {name} are gone, and nothing else holds their rows: "
                f"{named([plain(basename(path)) for path in gone])}",
                "find out what deletes files there; stop the stream, restore the folder of this table from a "
                "backup, or move it away, and start the stream again, which fills it with what Kafka still has",
            )


def _gone(tables: Tables, table: OpenTable) -> list[str]:
    """Names of the files that the newest version needs and that are missing.

    Raises:
        StoreError: The folder cannot be read.
    """
    try:
        found = tables.folder(table.name).get_file_info(FileSelector("", recursive=True))
    except OSError as error:
        raise StoreError(f"the folder of table {table.name} cannot be read: {error}") from error
    there = {basename(one.path) for one in found if one.type == FileType.File}
    return [uri for uri in table.handle.file_uris() if basename(uri) not in there]
