"""Findings about all groups: those in trouble, the worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline import shell
from pipeline.operate.doctor.behind import behind
from pipeline.operate.doctor.evidence import GroupEvidence, StreamEvidence, read_groups
from pipeline.operate.doctor.finding import Figures, Finding, group_text, named
from pipeline.operate.doctor.followed import followed
from pipeline.operate.doctor.listed import listed
from pipeline.operate.doctor.planned import planned_itself
from pipeline.operate.doctor.reconciling import reconciling
from pipeline.operate.doctor.stream import TABLE
from pipeline.operate.output import plain

_SHOWN = 10
_ABOUT_LAG = frozenset({"listed", "behind"})


@dataclass(frozen=True, slots=True)
class _Group:
    """Findings about a group, and its lag in seconds."""

    group_id: str
    problems: Sequence[Finding]
    is_unknown: bool
    """Nothing is known to be wrong, but its lag could not be judged."""
    lag_seconds: float
    lag: int

    @property
    def rank(self) -> tuple[float, int, str]:
        """The smaller, the worse."""
        return -self.lag_seconds, -self.lag, self.group_id


def trouble(stream: StreamEvidence) -> Iterator[Finding]:
    """Groups with a problem that `lagwise doctor GROUP` finds; the one with the longest wait comes first."""
    figures = Figures(question="groups", source=TABLE, as_of=stream.as_of, object="groups")
    groups = [_examined(group) for group in read_groups(stream)]
    bad = sorted((group for group in groups if group.problems), key=lambda group: group.rank)
    for group in bad[:_SHOWN]:
        yield _worst(group, figures)
    if len(bad) > _SHOWN:
        more = [group_text(group.group_id) for group in bad[_SHOWN:]]
        yield figures.finding(
            "problem",
            f"{len(more)} more group(s) are in trouble: {named(more)}",
            "`lagwise doctor GROUP` for each; look at what they have in common",
        )
    dark = [group.group_id for group in groups if group.is_unknown]
    if dark:
        yield figures.about(group_text(dark[0])).finding(
            "unknown",
            f"{len(dark)} group(s) cannot be judged: {named([group_text(group_id) for group_id in dark])}",
            shell.command("doctor", dark[0]),
        )
    if groups and not bad and not dark:
        yield figures.finding("ok", f"none of {len(groups)} group(s) is in trouble")


def _examined(group: GroupEvidence) -> _Group:
    questions = (listed, planned_itself, followed, behind, reconciling)
    found = [one for question in questions for one in question(group)]
    problems = [one for one in found if one.level == "problem"]
    return _Group(
        group_id=group.group_id,
        problems=problems,
        is_unknown=not problems
        and any(one.level == "unknown" and one.question in _ABOUT_LAG for one in found),
        lag_seconds=max((row["lag_seconds"] or 0.0 for row in group.lags), default=0.0),
        lag=sum(row["lag"] or 0 for row in group.lags),
    )


def _worst(group: _Group, figures: Figures) -> Finding:
    """The group with its first problem, of those about its lag if there is one."""
    first = min(group.problems, key=lambda one: one.question != "behind")
    more = f" (and {len(group.problems) - 1} more)" if len(group.problems) > 1 else ""
    name, as_of = group_text(group.group_id), first.as_of or figures.as_of
    return replace(figures, source=first.source, as_of=as_of, object=name).finding(
        "problem", f"{name}: {plain(first.cause)}{more}", shell.command("doctor", group.group_id)
    )
