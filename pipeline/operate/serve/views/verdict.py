"""One verdict per group, in an operator's words, from its figures alone."""

from typing import NamedTuple

from pipeline.operate.output import Row
from pipeline.operate.statuses import Level
from pipeline.planning.problem.load import BACKLOG_S


class Verdict(NamedTuple):
    """State of a group."""

    level: Level
    """"none" where the figures do not show it."""
    words: str
    """Such as "falling behind"."""
    why: str
    """The figures that it rests on."""


def verdict(row: Row) -> Verdict:
    """The worst verdict on a group that its row in the fleet supports."""
    found = _trouble(row) or _lag(row)
    unknown = row["unknown_lag"] + row["old_lag"]
    if not unknown or (found.level == "none" and not row["lag_seconds_is_lower_bound"]):
        return found
    doubt = f"the lag of {unknown} of {row['partitions']} partitions is unknown or old"
    if found.level == "good":
        return Verdict("none", "not known", doubt)
    return found._replace(why=f"{found.why}; {doubt}")


def _trouble(row: Row) -> Verdict | None:
    """Verdicts that need an operator, wherever the lag goes."""
    statuses, partitions = row["statuses"], row["partitions"]
    still = statuses.get("STOP", 0) + statuses.get("STALL", 0)
    ratio = row["capacity_ratio"]
    if row["member_count"] == 0 and row["lag"]:
        return Verdict("bad", "nobody reads it", f"no members, {row['lag']:,} unread records")
    if statuses.get("EXPIRED"):
        return Verdict(
            "bad",
            "loses records",
            f"Kafka deleted unread records of {statuses['EXPIRED']} of {partitions} partitions",
        )
    if still:
        return Verdict("bad", "stuck", f"{still} of {partitions} partitions stand still")
    if row["members_stuck"]:
        return Verdict(
            "bad",
            "does not rebalance",
            f"{row['members_stuck']} of {row['member_count']} members are behind their target assignment for longer "
            "than their rebalance timeout",
        )
    if ratio is not None and ratio > 1 and row["growing"]:
        return Verdict(
            "bad", "overloaded", f"records arrive at {100 * ratio:.0f} % of its members' observed capacity"
        )
    return None


def _lag(row: Row) -> Verdict:
    """Verdicts by the course of the lag."""
    seconds, growing = row["lag_seconds"], row["growing"]
    if row["partitions"] == 0:
        return Verdict("none", "no commits", "the group has committed nothing")
    if row["lag"] is None or seconds is None:
        return Verdict("none", "not known", "its lag is unknown")
    is_more = row["lag_seconds_is_lower_bound"]
    waits = f"the oldest record waits {'at least ' if is_more else ''}{seconds:,.0f} s"
    if seconds <= BACKLOG_S:
        # At first, every older backlog looks like that.
        return Verdict("none", "not known", waits) if is_more else Verdict("good", "keeps up", waits)
    if growing:
        return Verdict("fair", "falling behind", f"{growing} of {row['partitions']} partitions grow; {waits}")
    arrives, drains = row["arrival_rate"], row["drain_rate"]
    if arrives is not None and drains is not None and drains > arrives:
        more = f"the group reads {drains - arrives:,.0f} records/s more than arrive"
        return Verdict("fair", "catching up", f"{waits}; {more}")
    return Verdict("fair", "behind", waits)
