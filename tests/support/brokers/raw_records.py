"""Raw records of a topic, as a worker reads them, and what the decoder makes of them; without Spark or a broker."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.decode.filters import Filters
from pipeline.decode.step import Decoder, counted
from pipeline.kafka.sources.records.taking import RECORDS
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from tests.support.job.frames import NOW_MS

Pair = tuple[bytes | None, bytes | None]
"""Key and value."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded rows; a column that is not filled is null."""

    rows: list[dict[str, Any]]

    def of(self, *row_kinds: str) -> list[dict[str, Any]]:
        """The rows of these kinds."""
        return [row for row in self.rows if row["row_kind"] in row_kinds]

    def picked(self, row_kind: str, *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of the rows of a kind, sorted; `ack.kind` is a field of a column."""
        return sorted((tuple(_value(row, name) for name in columns) for row in self.of(row_kind)), key=repr)

    @property
    def counts(self) -> dict[str, int]:
        """How many records of each kind there were."""
        return {row["kind"]: row["count"] for row in self.of("count")}


def raw(*pairs: Pair, topic: str = OFFSETS_TOPIC, partition: int = 3) -> pa.RecordBatch:
    """Records at offsets 0, 1, …"""
    columns = {
        "topic": [topic] * len(pairs),
        "partition": [partition] * len(pairs),
        "offset": list(range(len(pairs))),
        "timestamp": [NOW_MS * 1000] * len(pairs),
        "key": [key for key, _ in pairs],
        "value": [value for _, value in pairs],
    }
    return pa.RecordBatch.from_pydict(columns, schema=RECORDS)


def decoded(batch: pa.RecordBatch, filters: Filters) -> Decoded:
    """What one worker makes of the records, counters and all."""
    counts: Counter[str] = Counter()
    rows = [row for rows in Decoder(filters).decode(batch, counts) for row in _plain(rows)]
    return Decoded(rows + [row for rows in counted(counts) for row in _plain(rows)])


def _plain(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = rows.to_pylist()
    return plain


def _value(row: dict[str, Any], name: str) -> Any:
    column, _, field = name.partition(".")
    return row[column][field] if field else row[column]
