"""The text of one version of the tables, plain and compressed."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.exposition import Family, escaped
from pipeline.tables.stamp import Stamp

_GZIP = 31
"""Window bits with which zlib writes the gzip format."""
_LEVEL = 1
"""Text of this kind shrinks to a tenth. A higher level takes several times as long for a third of the rest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """A text to which each scrape adds the samples of the moment; compressed when a client first asks for that."""

    clusters: tuple[str, ...]
    """Names of the clusters of the tables: one, or none before the first start of a driver."""
    stamp: Stamp | None = None
    """Stamp of the newest batch."""
    texts: Mapping[Family, bytes]
    """Lines of each family."""

    @cached_property
    def _text(self) -> bytes:
        return b"".join(self.texts.values())

    def plain(self, more: bytes) -> bytes:
        """The text with the added samples."""
        return self._text + more

    def gzip(self, more: bytes) -> bytes:
        """The same, compressed: as one stream, since not every client reads several, one after the other."""
        begun, compressor = self._begun
        rest = compressor.copy()
        ended: bytes = rest.compress(more) + rest.flush()
        return begun + ended

    @cached_property
    def _begun(self) -> tuple[bytes, Any]:
        compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
        return compressor.compress(self._text) + compressor.flush(zlib.Z_SYNC_FLUSH), compressor


def joined(pages: Mapping[str, Page]) -> Page:
    """The pages of several clusters, by name, as one: the name is label `cluster` of every sample."""
    lines: dict[Family, list[bytes]] = {}
    for name, page in pages.items():
        for family, text in page.texts.items():
            lines.setdefault(family, []).append(_labelled(text, family, name))
    texts = {
        family: family.header.encode() + b"".join(found) for family, found in lines.items() if any(found)
    }
    return Page(clusters=tuple(pages), texts=texts)


def _labelled(text: bytes, family: Family, cluster: str) -> bytes:
    """The samples with one more label, and without the lines about the family."""
    start = f"\n{family.name}{{".encode()
    # What is in a label is escaped, so only samples begin a line like this.
    labelled = text.replace(start, start + f'cluster="{escaped(cluster)}",'.encode())
    return labelled[len(family.header) :]
