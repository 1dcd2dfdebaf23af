"""Findings about one group: members of a KIP-848 group that do not reach their target assignment."""

from collections.abc import Iterator, Mapping

from pipeline.operate.doctor.evidence import GroupEvidence
from pipeline.operate.doctor.finding import Finding, named
from pipeline.operate.listings.groups import assignment_text
from pipeline.operate.listings.reconciling import BehindMember, Held, behind_members
from pipeline.operate.output import plain

_TODO = "look at the consumer: it gives partitions up only in poll(), not while it processes a record"


def reconciling(group: GroupEvidence) -> Iterator[Finding]:
    """Yield findings on members behind their target assignment: for how long, and the partitions they still hold."""
    at = group.stream.as_of
    if group.group is None or at is None:
        return
    figures = group.figures("behind", "consumer_groups", at)
    late = behind_members(group.group, at)
    names = {
        member["member_id"]: plain(member["client_id"] or member["member_id"]) for member in group.members
    }
    for one in (one for one in late if one.is_stuck):
        yield figures.about(names[one.member_id]).finding(
            "problem",
            f"the member is stuck: behind its target assignment for {one.behind_s:.0f} s, longer than its rebalance "
            f"timeout of {one.timeout_s:.0f} s; {_why(one, names)}",
            _TODO,
        )
    waiting = [names[one.member_id] for one in late if not one.is_stuck]
    if waiting:
        yield figures.finding(
            "note", f"{len(waiting)} member(s) are on the way to their target assignment: {named(waiting)}"
        )


def _why(one: BehindMember, names: Mapping[str, str]) -> str:
    if one.gives_up:
        return f"it does not give up {_text(one.gives_up)}"
    if one.waits_for:
        held = [f"{_text(held)} of {names[other]}" for other, held in sorted(one.waits_for.items())]
        return f"it waits for {named(held)}"
    return "it has not taken it yet"


def _text(held: Held) -> str:
    return assignment_text({topic: list(numbers) for topic, numbers in held.items()})
