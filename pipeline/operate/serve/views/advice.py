"""Advice for the operator of a group, in sentences, from its figures alone."""

from collections.abc import Iterator, Sequence

from pipeline.operate.output import Row


def advice(row: Row, members: Sequence[Row]) -> Iterator[str]:
    """Sentences about a group, by its row in the fleet and its `member_rows`: the situation, and what to do."""
    ratio = row["capacity_ratio"]
    if ratio is not None and ratio > 1:
        yield (
            f"records arrive at {100 * ratio:.0f} % of its members' observed capacity: no assignment helps; "
            "add members, or make them faster"
        )
    yield from _of_members(row)
    yield from _of_one_partition(row, members)
    if row["provisional"]:
        yield (
            f"{row['provisional']} of {row['partitions']} partitions are provisional: the offsets topic is not read "
            "to its end; see Health"
        )
    if row["unknown_lag"]:
        yield f"the lag of {row['unknown_lag']} of {row['partitions']} partitions is unknown: see their status"
    if row["old_lag"]:
        yield (
            f"the log ends of {row['old_lag']} of {row['partitions']} partitions are old: their lag may have grown; "
            "look at the brokers that lead them"
        )


def _of_members(row: Row) -> Iterator[str]:
    count, idle = row["member_count"], row["members_idle"]
    if count == 0 and row["lag"]:
        yield "it has no members and unread records: start its consumers, or delete the group"
    elif count is not None and count > row["partitions"] > 0:
        yield (
            f"it has {count} members for {row['partitions']} partitions: {count - row['partitions']} can have none; "
            "stop some, or add partitions"
        )
    elif idle:
        yield f"{idle} of {count} members own no partition"


def _of_one_partition(row: Row, members: Sequence[Row]) -> Iterator[str]:
    alone = [
        one
        for one in members
        if one["partitions"] == 1 and one["capacity"] and (one["arrival_rate"] or 0) > one["capacity"]
    ]
    if alone and (row["capacity_ratio"] or 0) <= 1:
        yield (
            f"{len(alone)} members own a single partition, which receives more than their observed capacity: "
            "add partitions or keys, or faster members"
        )
