"""An assignment as the answer to a JSON case: names for indices, figures, and the reason in words."""

import math

import numpy as np

from assignor.cases.input import Case
from assignor.evaluation.drain.bound import LowerBound, group_bound
from assignor.evaluation.drain.time import drain_s, lag_imbalance, undrained
from assignor.evaluation.drain.words import obstacles
from assignor.evaluation.validity import Verdict
from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import by_member, by_topic
from assignor.model.group import Group
from assignor.strategies.registry import Strategy


def answer(
    case: Case, chosen: Strategy, assignment: Assignment, verdict: Verdict, *, seconds: float
) -> dict[str, object]:
    """The answer, ready for JSON: members in tie-break order, topics and partitions ascending."""
    group = case.group
    bound = group_bound(group)
    before_s, after_s = drain_s(group, group.owner), drain_s(group, assignment.member)
    figures: dict[str, object] = {
        "seconds": seconds,
        "moves": verdict.moves,
        "counts": verdict.counts.tolist(),
        "drain_s_before": finite(before_s),
        "drain_s_after": finite(after_s),
        "drain_s_bound": finite(None if bound is None else bound.time_s),
        "lag_imbalance_before": lag_imbalance(group, group.owner),
        "lag_imbalance_after": lag_imbalance(group, assignment.member),
    }
    unplaced = np.nonzero(assignment.member < 0)[0]
    return {
        "assignment": by_member(group, assignment.member),
        "unassigned": by_topic(group.topics, unplaced),
        "moves": named_moves(case, assignment.member),
        "figures": figures,
        "reason": reason(case, chosen, assignment, bound=bound, before_s=before_s, after_s=after_s),
    }


def reason(
    case: Case,
    chosen: Strategy,
    assignment: Assignment,
    *,
    bound: LowerBound | None,
    before_s: float | None,
    after_s: float | None,
) -> str | None:
    """Return remarks on the answer; None without any.

    Args:
        case: The case.
        chosen: The strategy.
        assignment: Its answer.
        bound: Lower bound for every assignment; None if capacities are unknown, like the times.
        before_s: Drain time as owned.
        after_s: Drain time as assigned.
    """
    remarks = [
        *assignment.remarks,
        *_unassigned_remarks(assignment),
        *_input_remarks(case, chosen),
        *_never_remarks(case.group, bound, before_s=before_s, after_s=after_s),
    ]
    return "; ".join(dict.fromkeys(remarks)) or None


def named_moves(case: Case, member: Int32s) -> list[dict[str, object]]:
    """Return every moved partition in (topic, partition) order; from or to is null without a member."""
    group, holder = case.group, case.group.ownership.holder
    names = (*group.member_ids, None)  # index -1 is nobody
    return [
        {
            "topic": group.topics.names[group.topics.topic_of[partition]],
            "partition": int(group.topics.number_of[partition]),
            "from": names[holder[partition]],
            "to": names[member[partition]],
            "lag": None if case.unknown_lag[partition] else int(group.lag[partition]),
        }
        for partition in np.nonzero(member != holder)[0].tolist()
    ]


def finite(time_s: float | None) -> float | None:
    """Convert infinity to null, because JSON has none; `reason` explains it."""
    return None if time_s is None or math.isinf(time_s) else round(float(time_s), 6)


def _unassigned_remarks(assignment: Assignment) -> list[str]:
    why, partitions = np.unique(assignment.why[assignment.member < 0], return_counts=True)
    return [
        f"{n} partition(s) unassigned: {Unassigned(code).words}"
        for code, n in zip(why.tolist(), partitions.tolist(), strict=True)
    ]


def _input_remarks(case: Case, chosen: Strategy) -> list[str]:
    remarks = []
    unknown = int((case.unknown_lag & case.group.readable()).sum())
    if unknown > 0 and (chosen.reads_lag or case.group.capacity is not None):
        remarks.append(f"{unknown} partition(s) of unknown lag counted as 0")
    ignored = case.group.ignored_claims
    if ignored.total > 0:
        remarks.append(
            f"{ignored.total} claim(s) ignored: {ignored.unknown_topic} on unknown topics, "
            f"{ignored.out_of_range} on partitions that do not exist"
        )
    contested = int(case.group.ownership.contested.sum())
    if contested > 0:
        remarks.append(f"{contested} partition(s) claimed by several members of one generation")
    return remarks


def _never_remarks(
    group: Group, bound: LowerBound | None, *, before_s: float | None, after_s: float | None
) -> list[str]:
    if bound is not None and math.isinf(bound.time_s):
        return list(obstacles(group, bound))
    remarks = []
    if before_s == math.inf and (group.owner >= 0).any():
        unread = int(undrained(group, group.owner).sum())
        remarks.append(
            f"{unread} partition(s) with records to read have no owner now"
            if unread > 0
            else "under its present owners the group is never drained"
        )
    if after_s == math.inf:
        remarks.append("under this assignment the group is never drained")
    return remarks
