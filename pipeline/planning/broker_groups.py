"""KIP-848 groups, whose partitions the broker assigns: what has to be known before one is planned, and for whom.

Such a group keeps reading while it is assigned anew, and each member comes to its target assignment by itself. So it
is planned only when every member has arrived, and everything that a target depends on stands in its records.
"""

from collections import Counter
from dataclasses import replace

from assignor.errors import AbstainError
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.facts import GroupFacts, MemberFacts, PartitionFacts, Rules


def rules_of(facts: GroupFacts, rules: Rules) -> Rules:
    """The rules as they hold for the group: nobody applies plans of one that the broker assigns."""
    if not facts.is_kip848:
        return rules
    return replace(rules, advice=broker_reasons.ADVICE, dry_run=True, needs_approval=False)


def why_not_reconciled(facts: GroupFacts) -> str | None:
    """Why a KIP-848 group cannot be planned as its records are; None when it can."""
    unknown = next((reason for member in facts.members if (reason := _why_unknown(member))), None)
    stuck, classic = (
        next((member.member_id for member in facts.members if _has(member, flag)), None)
        for flag in ("is_stuck", "is_classic")
    )
    # In this order: the first one that applies is the one that the operator has to know.
    candidates = (
        (unknown is not None, unknown),
        (facts.state is None or facts.generation is None, broker_reasons.GROUP_UNKNOWN),
        (not facts.members, reasons.NO_MEMBERS),
        (stuck is not None, broker_reasons.member_stuck(stuck or "", facts.group_id)),
        (facts.state != "Stable", reasons.not_stable(facts.state)),
        (classic is not None, broker_reasons.member_classic(classic or "")),
    )
    return next((reason for applies, reason in candidates if applies), None)


def require_owned(facts: GroupFacts, partitions: PartitionFacts) -> None:
    """Return if each partition that a KIP-848 group subscribes to has one owner; of other groups nothing is asked.

    Raises:
        AbstainError: One has none, or two; the message names it.
    """
    if not facts.is_kip848:
        return
    owners = Counter(
        (topic, number)
        for member in facts.members
        for topic, numbers in member.assigned.items()
        for number in numbers
    )
    twice = [place for place, count in owners.items() if count > 1]
    if twice:
        raise AbstainError(broker_reasons.owned_twice(_name(*min(twice)), len(twice) - 1))
    subscribed = zip(partitions.topic, partitions.partition.tolist(), strict=True)
    unowned = [place for place in subscribed if place not in owners]
    if unowned:
        raise AbstainError(broker_reasons.unowned(_name(*unowned[0]), len(unowned) - 1))


def _why_unknown(member: MemberFacts) -> str | None:
    found = member.reconciliation
    what = broker_reasons.NO_RECONCILIATION if found is None else found.unknown
    return None if what is None else broker_reasons.member_unknown(member.member_id, what)


def _has(member: MemberFacts, flag: str) -> bool:
    return member.reconciliation is not None and bool(getattr(member.reconciliation, flag))


def _name(topic: str, number: int) -> str:
    return f"{topic}-{number}"
