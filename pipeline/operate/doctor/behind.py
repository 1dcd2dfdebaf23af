"""Findings about one group's lag: whether it is behind, where, and why."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pipeline.operate.doctor.evidence import GroupEvidence, Row
from pipeline.operate.doctor.facts import facts_of, names_of
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.doctor.outages import outages
from pipeline.operate.doctor.stream import TABLE
from pipeline.operate.listings.decisions import no_time
from pipeline.operate.old_log_ends import IS_OLD, is_age_open
from pipeline.operate.output import partition_text, plain, span_text
from pipeline.planning import reasons
from pipeline.planning.rows.causes import cause_of

_MOST_OF_LAG = 0.5
_GROWS = 1.05
"""Rates are moving averages: two within this share of one another are equal."""
_TODO_OF_UNKNOWN = (
    "no commit, no log end, a commit beyond the log end, or one in a deleted topic of that name: see "
    "`lagwise lag --wide`"
)
_CAPACITY = re.compile(r"capacity|alone takes|are they stuck|add members|add partitions|drains: ")
"""Remarks of the planner about what no assignment can change."""
_ASSUMED = "lagwise assumes at most"
"""What such a remark rests on."""


def behind(group: GroupEvidence) -> Iterator[Finding]:
    """Yield findings on whether the group is behind, and on the cause: its partitions, members and rates."""
    names = names_of(facts_of(group))
    rows = [{**row, "owner": _owner(row, names)} for row in group.lags if row["status"] != "DELETED"]
    if not rows:
        return
    figures = group.figures("behind", TABLE, group.stream.as_of)
    is_late, found = _verdict(group, rows, figures)
    yield found
    yield from _unknown(rows, figures)
    yield from _old_log_ends(rows, figures)
    yield from _statuses(rows, figures)
    yield from _nobody_reads(group, rows, figures)
    yield from outages(group)
    if is_late:
        yield from _one_member(group, rows, figures)
        yield from _trends(rows, figures)
        yield from _rates(rows, figures)
    yield from _of_the_planner(group)


def _verdict(group: GroupEvidence, rows: Sequence[Row], figures: Figures) -> tuple[bool, Finding]:
    known = [row for row in rows if row["lag"] is not None]
    if not known:
        return False, figures.finding(
            "unknown", f"the lag of all {len(rows)} partition(s) is unknown", _TODO_OF_UNKNOWN
        )
    unread = [row for row in known if row["lag"]]
    has_older = any(is_age_open(row) for row in known)
    if not unread and has_older:
        return False, figures.finding(
            "unknown", "nothing was unread at the last known log ends; what has arrived since is unknown"
        )
    if not unread:
        return False, figures.finding("ok", "nothing is unread")
    return _lateness(group, unread, figures, has_older=has_older)


def _lateness(
    group: GroupEvidence, rows: Sequence[Row], figures: Figures, *, has_older: bool
) -> tuple[bool, Finding]:
    """How long the oldest unread record of these partitions has waited; each has one, and others may have."""
    unread = f"{sum(row['lag'] for row in rows):,} records are unread"
    aged = [row for row in rows if row["lag_seconds"] is not None]
    if not aged:
        return False, figures.finding("unknown", f"{unread}, and how long the oldest has waited is unknown")
    worst = max(aged, key=lambda row: (row["lag_seconds"], row["lag"]))
    has_older = has_older or len(aged) < len(rows) or any(row["lag_seconds_is_lower_bound"] for row in aged)
    text = f"{unread}, the oldest for {'at least ' if has_older else ''}{span_text(worst['lag_seconds'])}"
    limit_s = group.stream.config.plan.for_group(group.group_id).guards.min_lag_s
    if worst["lag_seconds"] < max(limit_s, 1):
        if has_older:
            text = f"{text}, so whether it is late (min_lag_s = {limit_s}) is still unknown"
            return False, figures.finding("unknown", text)
        return False, figures.finding("ok", f"{text}; that is not late (min_lag_s = {limit_s})")
    place = partition_text(worst)
    return True, figures.about(place).finding("problem", f"{text} ({place}, owner {worst['owner']})")


def _unknown(rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    """Partitions whose lag is unknown, where that of others is known."""
    never = [partition_text(row) for row in rows if row["status"] == "NOT_COMMITTED"]
    if never:
        yield figures.about(never[0]).finding(
            "note",
            f"the group has no commit, and so unknown lag, in {len(never)} of {len(rows)} partitions: {named(never)}",
            "nothing if their consumers have just started; otherwise check that they commit",
        )
    unknown = [partition_text(row) for row in rows if row["lag"] is None and row["status"] != "NOT_COMMITTED"]
    if unknown and len(unknown) + len(never) < len(rows):
        yield figures.about(unknown[0]).finding(
            "unknown",
            f"{len(unknown)} of {len(rows)} partitions have unknown lag in spite of a commit: {named(unknown)}",
            _TODO_OF_UNKNOWN,
        )


def _old_log_ends(rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    """Partitions whose lag rests on an old log end."""
    old = [row for row in rows if row[IS_OLD]]
    if old:
        since = min(row["log_observed_at"] for row in old)
        yield replace(figures, as_of=since, object=partition_text(old[0])).finding(
            "unknown",
            f"the lag of {len(old)} of {len(rows)} partitions rests on old log ends and may have grown: "
            f"{named([partition_text(row) for row in old])}",
            "look at the brokers that lead them",
        )


def _statuses(rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    """Problems by Burrow's rules."""
    words = {
        "EXPIRED": (
            "records were deleted before the group had read them",
            "raise the topic's retention, or read faster",
        ),
        "STOP": (
            "there is something to read and nothing is committed",
            "look at their owners: are they stuck or gone?",
        ),
        "STALL": (
            "the same offset is committed again and again",
            "look at their owners: a record that always fails?",
        ),
        "REWIND": (
            "the group has gone back to an earlier offset",
            "nothing if somebody has reset its offsets",
        ),
    }
    by_status = defaultdict(list)
    for row in rows:
        by_status[row["status"]].append(row)
    for status, (cause, todo) in words.items():
        affected = by_status[status]
        if affected:
            worst = max(affected, key=lambda row: row["lag"] or 0)
            yield figures.about(partition_text(worst)).finding(
                "note" if status == "REWIND" else "problem",
                f"{status}: {cause} in {len(affected)} partition(s): "
                f"{named([*map(partition_text, affected)])}; owner {worst['owner']}",
                todo,
            )


def _nobody_reads(group: GroupEvidence, rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    late = [one for one in rows if one["lag"] and not one["assigned"]]
    if not (group.has_known_members and late):
        return
    if not group.members:
        yield figures.finding("problem", "nobody reads: the group has no members", "start its consumers")
        return
    if any(member["assigned"] is None for member in group.members):
        # Nobody knows what it has: it may be these.
        return
    places = [partition_text(one) for one in late]
    yield figures.about(places[0]).finding(
        "problem",
        f"{len(places)} partition(s) with unread records have no owner: {named(places)}",
        "nobody subscribes to these topics any longer, or a hand-over is under way",
    )


def _one_member(group: GroupEvidence, rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    lags: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["member_id"] is not None:
            lags[row["member_id"]] += row["lag"] or 0
    total = sum(lags.values())
    if not total or len(group.members) < 2:  # noqa: PLR2004 - one alone has everything
        return
    member, lag = max(lags.items(), key=lambda pair: pair[1])
    if lag > _MOST_OF_LAG * total:
        owned = [row for row in rows if row["member_id"] == member]
        yield figures.about(owned[0]["owner"]).finding(
            "problem",
            f"one of {len(group.members)} members has {lag / total:.0%} of the lag and {len(owned)} of {len(rows)} "
            f"partitions: {owned[0]['owner']}",
            _todo_of_one_member(group),
        )


def _todo_of_one_member(group: GroupEvidence) -> str:
    if group.decision is not None and cause_of(group.decision["reason"]) == reasons.AT_TARGET:
        return (
            "the planner has no better assignment: make this member faster, or add partitions to its topics"
        )
    return "another assignment may help: see planned and followed"


def _trends(rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    """Where lag has grown, or else fallen, within the last minutes."""
    places = defaultdict(list)
    for row in rows:
        places[row["trend"]].append(partition_text(row))
    rest = f" ({len(places[None])} unknown)" if places[None] else ""
    growing, falling = places["growing"], places["falling"]
    if growing:
        yield figures.about(growing[0]).finding(
            "problem",
            f"lag has grown in {len(growing)} of {len(rows)} partitions{rest}: {named(growing)}",
            "wait for a plan, if one is under way; else add members, or make them faster",
        )
    elif falling:
        yield figures.about(falling[0]).finding(
            "note", f"lag has fallen in {len(falling)} of {len(rows)} partitions{rest}: {named(falling)}"
        )


def _rates(rows: Sequence[Row], figures: Figures) -> Iterator[Finding]:
    known = [row for row in rows if row["arrival_rate"] is not None and row["drain_rate"] is not None]
    if len(known) < len(rows):
        yield figures.finding(
            "unknown", f"rates of {len(rows) - len(known)} of {len(rows)} partitions are unknown"
        )
        return
    arriving, drained = (sum(row[name] for row in rows) for name in ("arrival_rate", "drain_rate"))
    text = f"{arriving:,.0f} records/s arrive and {drained:,.0f} are drained"
    # What has happened is better known than what averages say of it.
    has_trend = any(row["trend"] is not None for row in rows)
    yield figures.finding("note", text) if has_trend else _by_averages(text, arriving, drained, figures)


def _by_averages(text: str, arriving: float, drained: float, figures: Figures) -> Finding:
    if arriving > _GROWS * drained:
        todo = "add members or make them faster, if no plan helps"
        return figures.finding("problem", f"{text}: lag grows", todo)
    is_shrinking = drained > _GROWS * arriving
    return figures.finding("note", f"{text}: lag {'shrinks' if is_shrinking else 'stays about the same'}")


def _of_the_planner(group: GroupEvidence) -> Iterator[Finding]:
    """What the newest decision predicts, and what it says about capacity."""
    decision = group.decision
    if decision is None:
        return
    figures = group.figures("behind", "plan_state", decision["updated_at"])
    for remark in (decision["reason"] or "").split("; "):
        if _CAPACITY.search(remark) and not remark.startswith("no member's capacity is known"):
            yield figures.finding("problem", f"the planner says: {plain(remark)}")
        elif _ASSUMED in remark:
            yield figures.finding("note", f"the planner says: {plain(remark)}")
    times = [decision["drain_s_before"], decision["drain_s_after"]]
    if decision["moves"] and times != [None, None]:
        before, after = (no_time(decision) if one is None else span_text(one) for one in times)
        yield figures.finding(
            "note", f"predicted time to drain: {before} as assigned, {after} under the plan"
        )


def _owner(row: Row, names: Mapping[str, str]) -> str:
    if row["member_id"] is None:
        return "unknown"
    name = names.get(row["member_id"], f"member {row['member_id']}")
    return f"{plain(name)} at {plain(row['client_host'])}"
