"""Partitions by the member that owns them, as cells coloured by lag; those that the plan moves are outlined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.operate.old_log_ends import is_age_open
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.page.names import member_name
from pipeline.operate.serve.views.group import worst
from pipeline.operate.serve.views.plans import Key

MOST_CELLS = 3_000
LEVELS = ("0", "1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 to 99,999", "100,000 and more")
"""Lag in records, by level."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One partition."""

    partition: int
    level: str
    words: str
    """What colour and outline say, and more."""
    is_moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Partitions of one member by topic; `member` is None for partitions without an owner."""

    member: Row | None
    topics: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """The whole map."""

    lines: Sequence[Line]
    left_out: int
    """Partitions without a cell: those with the least lag, if there are too many."""


def heat(
    members: Sequence[Row], partitions: pa.Table, moves: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> Heat:
    """The map of a group, from its `member_rows`, their `member_names`, and the moves of its newest target."""
    to: dict[Key, str | None] = {(move["topic"], move["partition"]): move["to"] for move in moves}
    shown = worst(partitions, MOST_CELLS)
    owned: dict[str | None, dict[str, list[Cell]]] = {}
    for row in iterate(shown):
        cells = owned.setdefault(row["member_id"], {}).setdefault(row["topic"], [])
        cells.append(_cell(row, to, names))
    return Heat(
        lines=[
            Line(member=one if one["member_id"] else None, topics=owned.get(one["member_id"], {}))
            for one in members
        ],
        left_out=partitions.num_rows - shown.num_rows,
    )


def level_of(lag: int | None) -> str:
    """Class of a cell: the number of digits of its lag."""
    if lag is None:
        return UNKNOWN
    return str(min(len(str(lag)) if lag else 0, len(LEVELS) - 1))


def _cell(row: Row, to: Mapping[Key, str | None], names: Mapping[str, str]) -> Cell:
    key = row["topic"], row["partition"]
    lag = "lag unknown" if row["lag"] is None else f"lag {row['lag']:,}{' (old)' if row['is_old'] else ''}"
    at_commit = "" if row["lag_at_commit"] is None else f", {row['lag_at_commit']:,} at its newest commit"
    seconds = row["lag_seconds"]
    has_more = row["lag_seconds_is_lower_bound"] or is_age_open(row)
    age = "" if seconds is None else f", {'at least ' if has_more else ''}{seconds:.1f} s"
    moves = _moves_to(to[key], names) if key in to else ""
    return Cell(
        partition=row["partition"],
        level=level_of(row["lag"]),
        words=f"{lag}{at_commit}{age}, {row['status']}{' provisional' if row['provisional'] else ''}{moves}",
        is_moved=key in to,
    )


def _moves_to(member_id: str | None, names: Mapping[str, str]) -> str:
    return f", moves to {'nobody' if member_id is None else member_name(member_id, names)}"
