"""Findings about one group: is it in the tables, with all its topics, and if not, why not."""

import difflib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from pipeline import shell
from pipeline.name_filter import NameFilter
from pipeline.operate.doctor.evidence import GroupEvidence
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.doctor.stream import TABLE
from pipeline.operate.output import partition_text, plain

_LIKENESS = 0.6
"""Minimum similarity by difflib for a typing error."""


def listed(group: GroupEvidence) -> Iterator[Finding]:
    """Yield findings on whether the tables have the group and all its topics."""
    figures = group.figures("listed", TABLE, group.stream.as_of)
    yield from _present(group, figures) if group.is_listed else _absent(group, figures)
    yield from _provisional(group, figures)
    yield from _quarantined(group, figures)
    yield from _hidden_topics(group, figures)
    yield from _unanswered(group, figures)


def _present(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    topics = {row["topic"] for row in group.lags}
    what = f"{len(group.lags)} partition(s) of {len(topics)} topic(s)" if group.lags else "no partition"
    yield figures.finding("ok", f"the group is listed with {what}; {_kind(group)}")
    if not group.lags:
        yield _without_lag(group, figures)
    if group.stream.is_configured and (why := _left_out(group)):
        yield figures.of_configuration("source.groups_exclude").finding(
            "note",
            f"this configuration leaves the group out ({why}), and the stream has listed it under another one",
            "restart the stream to make it use this configuration; otherwise name its own with --config",
        )


def _without_lag(group: GroupEvidence, figures: Figures) -> Finding:
    if group.group is not None and group.group["group_type"] == "share":
        return figures.finding(
            "note",
            "lagwise shows no lag of share groups: it does not read the topic in which Kafka keeps their positions",
            f"ask Kafka's own tool: `kafka-share-groups.sh --describe --group {shell.quoted(group.group_id)}`",
        )
    return figures.finding(
        "note",
        "there is no lag to show: the group has neither a commit nor a partition",
        "look at its subscription: `lagwise groups --members --wide`",
    )


def _kind(group: GroupEvidence) -> str:
    row = group.group
    if row is None:
        return "it has no record of its own: its consumers use assign(), or an admin has committed for it"
    members = str(len(group.members)) if group.has_known_members else "unknown"
    state = f", state {row['state']}" if row["state"] else ""
    generation = f", generation {row['generation']}" if row["generation"] is not None else ""
    kind = row["group_type"]
    what = "a group of unknown type" if kind == "unknown" else f"a {kind} group"
    return f"it is {what}{state}{generation}, members: {members}"


def _absent(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    if figures.as_of is None:
        yield figures.finding("unknown", "the first batch will show whether lagwise lists the group")
        return
    yield figures.finding(
        "problem",
        "the tables do not list the group: lagwise has read no commit and no record of it",
        "make sure that it exists (`kafka-consumer-groups --describe`) and has committed; see also the findings below",
    )
    if not group.stream.is_configured:
        yield figures.of_configuration("source.groups_exclude").finding(
            "unknown",
            "whether source.groups_include or source.groups_exclude leaves the group out is unknown here",
            "name the stream's configuration with --config FILE",
        )
    elif why := _left_out(group):
        yield figures.of_configuration("source.groups_exclude").finding(
            "problem",
            f"the configuration leaves the group out: {why}",
            "change it and restart the stream, which then reads the offsets topic from its start",
        )
    near = difflib.get_close_matches(group.group_id, group.others, n=3, cutoff=_LIKENESS)
    if near:
        yield figures.finding(
            "note",
            f"the tables list groups with similar names: {', '.join(map(plain, near))}",
            "compare the spelling",
        )


def _left_out(group: GroupEvidence) -> str | None:
    """The filter that leaves the group out; None if no filter does."""
    source = group.stream.config.source
    if source.wants_group(group.group_id):
        return None
    excluding = [one for one in source.groups_exclude if NameFilter((one,)).admits(group.group_id)]
    if excluding:
        return f"source.groups_exclude has {excluding[0]!r}"
    return f"source.groups_include has only {named([repr(one) for one in source.groups_include])}"


def _provisional(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    stamp, number = group.stream.stamp, group.offsets_partition
    if stamp is None or number not in stamp.behind:
        return
    yield figures.about(f"__consumer_offsets-{number}").finding(
        "unknown",
        f"partition {number} of the offsets topic, which holds the group, is not read to its end: {stamp.reason}",
        "wait while the number of records left falls; otherwise look at the cause named there",
    )


def _quarantined(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    if not group.quarantined:
        return
    newest = max(group.quarantined, key=lambda row: row["updated_at"])
    yield replace(figures, source="quarantine", as_of=newest["updated_at"]).finding(
        "problem",
        f"{len(group.quarantined)} record(s) of the group could not be read, the newest: {plain(newest['reason'])}",
        "`lagwise quarantine` shows their bytes; look at the clients of the group",
    )


def _hidden_topics(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    alive = {row["topic"] for row in group.topics if row["deleted_at"] is None}
    subscribed = {name for member in group.members for name in member["topics"] or ()}
    source = group.stream.config.source
    for topic in sorted(subscribed - alive):
        if group.stream.is_configured and not source.wants_topic(topic):
            yield figures.of_configuration("source.topics_exclude").finding(
                "note",
                f"no lag is kept for topic {plain(topic)}, to which members subscribe: "
                "source.topics_include and source.topics_exclude leave it out",
                "change them to get its lag",
            )
        else:
            yield replace(figures, source="topic_offsets", object=plain(topic)).finding(
                "problem",
                f"the log offsets of topic {plain(topic)}, to which members subscribe, are unknown: it does not "
                "exist, or it is excluded or hidden from lagwise",
                "if it exists, allow Describe on it, and check source.topics_exclude",
            )


def _unanswered(group: GroupEvidence, figures: Figures) -> Iterator[Finding]:
    by_error = defaultdict(list)
    for row in group.topics:
        if row["error"] is not None and row["deleted_at"] is None:
            by_error[row["error"]].append(row)
    for error, rows in sorted(by_error.items()):
        places = sorted(map(partition_text, rows))
        answered = [row["observed_at"] for row in rows if row["observed_at"] is not None]
        since = f"since {plain(min(answered))}" if answered else "so far"
        yield replace(figures, source="topic_offsets", object=places[0]).finding(
            "problem",
            f"no broker has returned the log offsets of {named(places)} {since}: {plain(error)}",
            "look at the brokers that lead them; until they answer, the lag shown is that of the last answer",
        )
