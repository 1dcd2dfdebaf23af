"""The two tables of the screen: who has how much to do, and what was decided."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pipeline.cli.output import STYLES
from pipeline.demo.snapshot import GroupView, Plan, Share
from pipeline.demo.words import grounds, verdict

_NAMES = {None: "offsets only", "consumer": "KIP-848"}
_BAR_FROM_RECORDS = 1000
"""The longest bar is at least so many records, so that a group without lag looks like one."""


def lag_table(groups: Sequence[GroupView]) -> Table:
    """A row for each member, a bar for its lag; all bars on one scale."""
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim", padding=(0, 1, 0, 0))
    for header in ("GROUP", "ASSIGNOR", "MEMBER"):
        table.add_column(header, no_wrap=True, overflow="ellipsis")
    table.add_column("PARTS", justify="right", no_wrap=True)
    table.add_column("LAG", justify="right", no_wrap=True)
    table.add_column("", ratio=1, min_width=8)
    for header in ("IN/S", "OUT/S"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("STATUS", no_wrap=True)
    longest = max([_BAR_FROM_RECORDS, *(share.lag for group in groups for share in group.shares)])
    for group in groups:
        names = (group.group_id, group.assignor or _NAMES.get(group.group_type, ""))
        for place, share in enumerate(group.shares):
            table.add_row(*(names if place == 0 else ("", "")), *_cells(share, longest))
    return table


def _cells(share: Share, longest: int) -> tuple[RenderableType, ...]:
    colour = STYLES.get(share.status, "")
    return (
        share.client_id or Text("unknown", style="dim"),
        str(share.partitions),
        f"{share.lag:,}",
        ProgressBar(
            total=longest, completed=share.lag, style="grey23", complete_style=colour, finished_style=colour
        ),
        f"{share.arrival_rate:.0f}",
        f"{share.drain_rate:.0f}",
        Text(share.status, style=colour),
    )


def plan_table(newest: Sequence[Plan], earlier: Sequence[Plan]) -> Table:
    """The newest decision on each group, then plans that were made, newest first."""
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim", padding=(0, 1, 0, 0))
    for header in ("AT", "GROUP", "DECISION"):
        table.add_column(header, no_wrap=True)
    table.add_column("WHY", ratio=1, no_wrap=True, overflow="ellipsis")
    for plan in newest:
        table.add_row(*_plan_cells(plan))
    for plan in earlier:
        table.add_row(*_plan_cells(plan), style="dim")
    return table


def _plan_cells(plan: Plan) -> tuple[RenderableType, ...]:
    return (
        f"{plan.created_at:%H:%M:%S}",
        plan.group_id,
        Text(verdict(plan), style=STYLES.get(plan.decision, "")),
        grounds(plan),
    )
