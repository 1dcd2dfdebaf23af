"""Findings about the job as a whole: what it could not read, and what it decides about all groups."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pyarrow.compute as pc

from pipeline import shell
from pipeline.decode.bounded import LEFT_OUT
from pipeline.operate.doctor.evidence import Row, StreamEvidence, listed_groups, rows_of
from pipeline.operate.doctor.finding import Figures, Finding, group_text, named
from pipeline.operate.doctor.stream import TABLE, held
from pipeline.operate.output import partition_text, plain
from pipeline.planning import reasons
from pipeline.planning.rows.causes import guard_of
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS

_RECENT = timedelta(days=1)
_MOST_CAUSES = 5


def job(stream: StreamEvidence) -> Iterator[Finding]:
    """Yield findings on what the newest batch could not read, what holds it back, and its decisions."""
    figures = Figures(question="job", source=TABLE, as_of=stream.as_of, object=plain(stream.tables.root))
    yield from _unread(stream, figures)
    yield from _unanswered(stream, figures)
    yield from _quarantined(stream, figures)
    yield from _decisions(stream, figures)
    yield from _paused(stream, figures)


def _unread(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    stamp = stream.stamp
    if stamp is None:
        return
    count = stream.offsets_partitions or "an unknown number of"
    if stamp.behind:
        yield figures.about("__consumer_offsets").finding(
            "problem",
            f"{len(stamp.behind)} of {count} partitions of the offsets topic are behind, and their groups provisional: "
            f"{stamp.reason}",
            "wait while the number of records left falls; otherwise look at the cause named there",
        )
    elif stamp.held != NO_PLANS_BY_ANSWERS:
        yield figures.about("__consumer_offsets").finding(
            "ok", f"all {count} partitions of the offsets topic are read to their ends"
        )
    yield from held(stream, figures)


def _unanswered(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    is_unanswered = pc.field("error").is_valid() & pc.field("deleted_at").is_null()
    rows = rows_of(stream.tables, "topic_offsets", ("topic", "partition", "error"), is_unanswered)
    errors = Counter(row["error"] for row in rows)
    for error, count in errors.most_common(_MOST_CAUSES):
        places = sorted(partition_text(row) for row in rows if row["error"] == error)
        yield replace(figures, source="topic_offsets", object=places[0]).finding(
            "problem",
            f"no broker has returned the log offsets of {count} partition(s): {named(places)}: {plain(error)}",
            "look at the brokers that lead them; until they answer, the lag shown is that of the last answer",
        )


def _quarantined(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    since = stream.now - _RECENT
    rows = rows_of(
        stream.tables,
        "quarantine",
        ("topic", "kind", "reason", "updated_at"),
        pc.field("updated_at") >= since,
    )
    if rows:
        # A row of what was only counted says how many there were, not why.
        bad = [row for row in rows if row["kind"] != LEFT_OUT]
        more = " (others were only counted)" if len(bad) < len(rows) else ""
        newest: Row = max(bad or rows, key=lambda row: row["updated_at"])
        topics = sorted({plain(row["topic"]) for row in rows})
        yield replace(figures, source="quarantine", as_of=newest["updated_at"], object=topics[0]).finding(
            "problem",
            f"{len(bad)} record(s) of {named(topics)} could not be read within a day{more}, the newest: "
            f"{plain(newest['reason'])}",
            "`lagwise quarantine` shows them; find out who writes them",
        )


def _decisions(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    """Number of groups by decision, and what holds plans back or makes lagwise abstain."""
    listed = set(listed_groups(stream.tables))
    rows = [
        row
        for row in rows_of(stream.tables, "plan_state", ("group_id", "decision", "reason", "updated_at"))
        # Decisions about deleted groups stay for a while.
        if row["group_id"] in listed
    ]
    if not rows:
        yield replace(figures, source="plan_state").finding(
            "unknown", "nothing has been decided about any group yet", "wait for the first evaluation"
        )
        return
    counts = Counter(row["decision"] for row in rows)
    decided = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    figures = replace(figures, source="plan_state", as_of=max(row["updated_at"] for row in rows))
    yield figures.finding("ok", f"newest decisions about {len(rows)} group(s): {decided}")
    causes = Counter(cause for row in rows if (cause := _cause(row)) is not None)
    for cause, count in causes.most_common(_MOST_CAUSES):
        groups = sorted(row["group_id"] for row in rows if _cause(row) == cause)
        names = named([group_text(group_id) for group_id in groups])
        yield figures.about(group_text(groups[0])).finding(
            "note", f"{count} group(s), {names}: {plain(cause)}", shell.command("doctor", groups[0])
        )


def _cause(row: Row) -> str | None:
    """What holds the group's plan back, without figures and names that differ from group to group."""
    reason = row["reason"] or ""
    guard = guard_of(reason)
    if guard is not None:
        return reasons.held_back(guard)
    return reason.partition("; ")[0] if row["decision"] == "abstain" else None


def _paused(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    rows = rows_of(stream.tables, "orders", ("group_id", "paused", "ordered_at"), pc.field("paused"))
    if rows:
        groups = sorted(group_text(row["group_id"]) for row in rows)
        oldest = min(row["ordered_at"] for row in rows)
        yield replace(figures, source="orders").finding(
            "note",
            f"{len(groups)} group(s) are paused, the longest since {plain(oldest)}: {named(groups)}",
            "`lagwise resume` allows plans again",
        )
