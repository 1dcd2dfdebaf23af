"""`lagwise rebalances`: changes of groups over a span of time, or groups at one moment."""

from datetime import datetime, timezone
from typing import Annotated

import pyarrow.compute as pc
import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import GroupsOption
from pipeline.operate.cli.times import SinceOption, parse_time
from pipeline.operate.listings.groups import MEMBERS, by_member, count_of
from pipeline.operate.listings.spans import between, last_of
from pipeline.operate.output import Column, FormatOption, WideOption, end_without, names, progress, show
from pipeline.tables.reading import all_of, matches

_UPDATED = "updated_at"
_ORDER = [(name, "ascending") for name in (_UPDATED, "group_id", "cluster")]


_KEY = (
    Column(header="UPDATED-AT", name=_UPDATED),
    Column(header="GROUP", name="group_id"),
    Column(header="GENERATION", name="generation", is_number=True),
)
_COLUMNS = (
    *_KEY,
    Column(header="TYPE", name="group_type"),
    Column(header="STATE", name="state"),
    Column(header="#MEMBERS", name="members", cell=count_of("members"), is_number=True),
    Column(header="JOINED", name="joined", cell=count_of("joined"), is_number=True),
    Column(header="LEFT", name="left", cell=count_of("left"), is_number=True),
    Column(header="WHY", name="why"),
    Column(header="ASSIGNMENT-STRATEGY", name="assignor", is_wide=True),
    Column(header="PROTOCOL", name="rebalance_protocol", is_wide=True),
    Column(header="PROTOCOL-TYPE", name="protocol_type", is_wide=True),
    Column(header="LEADER", name="leader", is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)


def rebalances(
    *,
    group: GroupsOption = None,
    since: SinceOption = "1d",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="One moment instead: each group's newest row up to then, without groups that were gone.",
        ),
    ] = None,
    members: Annotated[
        bool, typer.Option("--members", "-m", help="One row per member and change, with what it was given.")
    ] = False,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Changes of groups, oldest first, or groups at one moment.

    Example: lagwise rebalances --group billing --at 2026-01-31T12:00:00Z

    UPDATED-AT is when the stream saw the change. Changes between two batches, or while the stream was down, are one
    row.

    WHY says what is new since the row before: type_changed, joined, left, replaced (a static member came back),
    resubscribed, moved_by_plan, rebalanced (a new generation, and nothing else that is known), gone or returned. Before
    first_seen nothing is known.

    GENERATION of a KIP-848 group is the group epoch. Such a group is rebalanced when it is at rest with other owners.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    now = datetime.now(tz=timezone.utc)
    end = parse_time(at, now=now) if at else now
    start = None if at else parse_time(since, now=now)
    stored, wanted = find(tables, config).tables, matches("group_id", group or ())
    with progress("reading group_history"):
        rows = stored.read(
            "group_history", columns=names(_COLUMNS), where=all_of(between(start, end), wanted)
        ).sort_by(_ORDER)
    if at:
        rows = last_of(rows, ("group_id", "cluster"))
        rows = rows.filter(pc.not_equal(rows["why"], "gone"))
    if members:
        keys = ("cluster", *names(_KEY))
        show(by_member(rows, keys), (*_KEY, *MEMBERS), output=output, wide=wide)
    else:
        show(rows, _COLUMNS, output=output, wide=wide)
    since_then = f"since {start:%Y-%m-%dT%H:%M:%SZ} " if start else ""
    end_without(rows, f"no row {since_then}until {end:%Y-%m-%dT%H:%M:%SZ} matches")
