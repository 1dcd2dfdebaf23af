"""The table of groups, brought forward batch by batch by the records of KIP-848 groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.fold.consumer_groups import consumer_group_events
from pipeline.fold.groups import fold_groups
from pipeline.source.decoded import Decoded, together
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import CONSUMER_GROUPS
from tests.support.groups.consumer_group_records import Written, events, topic_names
from tests.support.job.frames import NOW_MS, arrow, at, decoded_rows

NAMES = topic_names("t", "u")
_SCHEMA = arrow_schema(CONSUMER_GROUPS)
_OF_BATCH = {"cluster": "local", "batch_id": 0, "updated_at": at(0)}


class Groups:
    """The table of groups, batch by batch."""

    def __init__(self, *stored: dict[str, Any]) -> None:
        self.table = arrow("consumer_groups", *stored)
        self.position = 0

    def run(
        self,
        *records: Written,
        names: Mapping[str, str] = NAMES,
        reread: Sequence[int] = (),
        behind: Sequence[int] = (),
        beheaded: Sequence[int] = (),
        classic: Sequence[dict[str, Any]] = (),
        seconded: Sequence[str] = (),
        first: int | None = None,
    ) -> "Groups":
        """After the next batch; its records follow those of the one before, or begin at `first`."""
        first = self.position if first is None else first
        self.position = first + len(records) + len(classic)
        read = decoded_rows(*events(*records, first=first, at_ms=NOW_MS + 1000 * first))
        of_classic = [
            {
                "row_kind": "group",
                "group_type": "classic",
                "members": [],
                "position": first + len(records) + n,
            }
            | row
            for n, row in enumerate(classic)
        ]
        return self.fold(
            together([read, decoded_rows(*of_classic)]),
            names,
            reread=reread,
            behind=behind,
            beheaded=beheaded,
            seconded=seconded,
        )

    def fold(
        self,
        read: Decoded,
        names: Mapping[str, str],
        *,
        reread: Sequence[int] = (),
        behind: Sequence[int] = (),
        beheaded: Sequence[int] = (),
        seconded: Sequence[str] = (),
    ) -> "Groups":
        """After a batch that has read this."""
        found = consumer_group_events(
            self.table,
            read.kind("group_record", "group_record_tombstone"),
            names,
            reread=reread,
            beheaded=beheaded,
        )
        folded = fold_groups(
            self.table,
            pa.concat_tables([read.kind("group", "group_tombstone"), found], promote_options="permissive"),
            reread=reread,
            behind=behind,
            beheaded=beheaded,
            seconded=seconded,
        )
        for name, value in _OF_BATCH.items():
            filled = pa.scalar(value, _SCHEMA.field(name).type)
            folded = folded.append_column(name, pa.repeat(filled, folded.num_rows))
        self.table = folded.select(_SCHEMA.names).cast(_SCHEMA)
        return self

    def row(self) -> dict[str, Any]:
        """The only group."""
        (row,) = self.table.to_pylist(maps_as_pydicts="strict")
        return dict(row)

    def members(self, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(one[name] for name in columns) for one in self.row()["members"]]

    def progress(self, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(one[name] for name in columns) for one in self.row()["reconciliation"]]
