"""The two tables of the screen: lag of members, and decisions with their moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.snapshot import GroupView, Plan, Share
from pipeline.operate.demo.views.words import grounds, handed_over, verdict
from pipeline.operate.output import STYLES

_NAMES = {None: "offsets only", "consumer": "KIP-848"}
_BAR_FROM_RECORDS = 1000
"""Least number of records of the longest bar, so that groups without lag have short bars."""


def lag_table(
    groups: Sequence[GroupView], *, gained: Mapping[str, int] = MappingProxyType({}), folded: bool = False
) -> Table:
    """A row for each member, or each group if `folded`, with a bar for its lag; all bars have one scale.

    `gained` has, by client id, the partitions that a member was given recently, minus those that it gave up.
    """
    table = _lag_headers()
    shown = [(group, (group.whole,) if folded else group.shares) for group in groups]
    longest = max([_BAR_FROM_RECORDS, *(share.lag for _, shares in shown for share in shares)])
    for group, shares in shown:
        names = (group.group_id, group.assignor or _NAMES.get(group.group_type, ""))
        for place, share in enumerate(shares):
            cells = _cells(share, longest, gained.get(share.client_id or "", 0))
            table.add_row(*(names if place == 0 else ("", "")), *cells)
    return table


def _lag_headers() -> Table:
    table = _empty_table()
    for header in ("GROUP", "ASSIGNOR", "MEMBER"):
        table.add_column(header, no_wrap=True, overflow="ellipsis")
    table.add_column("PARTS", justify="right", no_wrap=True)
    table.add_column("LAG", justify="right", no_wrap=True)
    table.add_column("", ratio=1, min_width=8)
    for header in ("IN/S", "OUT/S"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("STATUS", no_wrap=True)
    return table


def _empty_table() -> Table:
    return Table(box=None, pad_edge=False, expand=True, header_style="dim", padding=(0, 1, 0, 0))


def _cells(share: Share, longest: int, gained: int) -> tuple[RenderableType, ...]:
    colour = STYLES.get(share.status, "")
    mark = (f"{gained:+d} ", "bold green" if gained > 0 else "bold magenta") if gained else ""
    return (
        share.client_id or Text("unknown", style="dim"),
        Text.assemble(mark, str(share.partitions)),
        f"{share.lag:,}",
        ProgressBar(
            total=longest, completed=share.lag, style="grey23", complete_style=colour, finished_style=colour
        ),
        f"{share.arrival_rate:.0f}",
        f"{share.drain_rate:.0f}",
        Text(share.status, style=colour),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A decision or move as a line."""

    at: datetime
    group_id: str
    what: str
    why: str
    style: str = ""


def entry_of_plan(plan: Plan) -> Entry:
    """A decision."""
    return Entry(
        at=plan.created_at,
        group_id=plan.group_id,
        what=verdict(plan),
        why=grounds(plan),
        style=STYLES.get(plan.decision, ""),
    )


def entry_of_moves(moves: Sequence[Move]) -> Entry:
    """Simultaneous moves of one group, at least one."""
    first, count = moves[0], len(moves)
    return Entry(
        at=first.at,
        group_id=first.group_id,
        what=f"moved {count}" if count > 1 else "moved",
        why=", ".join(map(handed_over, moves)),
        style="bold cyan",
    )


def entry_table(newest: Sequence[Entry], earlier: Sequence[Entry]) -> Table:
    """The newest decision about each group, then earlier plans and moves, the newest first."""
    table = _empty_table()
    for header in ("AT", "GROUP", "DECISION"):
        table.add_column(header, no_wrap=True)
    table.add_column("WHY", ratio=1, no_wrap=True, overflow="ellipsis")
    for entry in newest:
        table.add_row(*_entry_cells(entry))
    for entry in earlier:
        table.add_row(*_entry_cells(entry), style="dim")
    return table


def _entry_cells(entry: Entry) -> tuple[RenderableType, ...]:
    return (f"{entry.at:%H:%M:%S}", entry.group_id, Text(entry.what, style=entry.style), entry.why)
