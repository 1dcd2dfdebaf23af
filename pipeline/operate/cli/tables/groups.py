"""`lagwise groups`: groups and their members, from the offsets topic."""

from typing import Annotated

import pyarrow.compute as pc
import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.cli.tables.lag import GroupsOption, unconfirmed, warn_if_late, why_provisional
from pipeline.operate.listings.groups import (
    COLUMNS,
    GROUP,
    MEMBERS,
    PLAN,
    PROGRESS,
    PROVISIONAL,
    by_member,
    group_rows,
    with_decisions,
    with_progress,
    with_provisional,
)
from pipeline.operate.output import FormatOption, WideOption, end_without, note, progress, show
from pipeline.tables.reading import matches


def groups(
    *,
    group: GroupsOption = None,
    members: Annotated[
        bool, typer.Option("--members", "-m", help="One row per member, instead of per group.")
    ] = False,
    wide: WideOption = False,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Consumer groups with type, state, generation and members.

    Example: lagwise groups --members --group billing

    A group of type - has commits and no record of its own: its consumers use assign(), or an admin has committed for
    it. Its members cannot be seen; kafka-consumer-groups shows such a group as Empty. A state with * may be out of
    date, and so may the members of that group; a line on stderr gives the cause.

    GENERATION of a KIP-848 group is the group epoch. A member whose EPOCH is below TARGET-EPOCH, or that has partitions
    TO-GIVE-UP, is on its way to its target assignment (--wide).

    PLAN is the newest decision about the group; awaiting_approval waits for `lagwise approve`.

    Exit status: 0 rows were printed, 1 there are none or the tables cannot be read, 2 wrong usage.
    """
    source, wanted = find(tables, config), matches("group_id", group or ())
    stored = source.tables
    with progress("reading consumer_groups"):
        rows = with_decisions(group_rows(stored, wanted), stored, wanted)
    stamp = warn_if_late(source)
    rows = with_provisional(rows, stamp.behind if stamp else ())
    if members:
        each = with_progress(by_member(rows, ("cluster", "group_id")), stored, wanted)
        show(each, (GROUP, *MEMBERS, *PROGRESS), output=output, wide=wide)
    else:
        show(rows, (*COLUMNS, *PLAN, PROVISIONAL), output=output, wide=wide)
    count, why = unconfirmed(rows)
    if count:
        note(f"* state and members of {count} of {rows.num_rows} groups may be out of date: {why}")
    provisional = pc.sum(rows["provisional"]).as_py() - count if rows.num_rows else 0
    if provisional:
        note(
            f"* state and members of {provisional} of {rows.num_rows} groups are provisional: {why_provisional(stamp)}"
        )
    hidden = rows["members"].null_count
    if members and hidden:
        note(
            f"the members of {hidden} of {rows.num_rows} groups are unknown: lagwise does not read the member "
            "records of share and streams groups, and groups of type - have none"
        )
    end_without(rows, "no group matches")
