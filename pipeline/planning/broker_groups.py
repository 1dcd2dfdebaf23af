"""KIP-848 groups, whose partitions the broker assigns: the facts that planning needs, and who applies plans.

Such a group keeps reading while it is reassigned, and each member reaches its target assignment on its own. So lagwise
plans only once every member has reached it, and if the records contain everything that a target depends on.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from assignor.protocol.ranges import parse_ranges
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.facts import GroupFacts, MemberFacts, Rules
from pipeline.planning.state import GroupState, PlanState, Ranges
from pipeline.planning.values import Published

Places: TypeAlias = frozenset[tuple[str, int]]

_MOST_PARTITIONS = 1_000_000
"""More than any group has."""


def rules_of(facts: GroupFacts, rules: Rules) -> Rules:
    """Return the rules for this group; if the broker assigns, plans are advice unless the broker follows them."""
    if not facts.is_kip848:
        return rules
    why = _why_advice(facts, rules)
    if why is not None:
        return replace(rules, advice=why, dry_run=True, needs_approval=False)
    # The group has already migrated. Followers of versions that know only the classic protocol refuse such a plan.
    return replace(rules, migration="possible")


def _why_advice(facts: GroupFacts, rules: Rules) -> str | None:
    if not rules.broker_follows:
        return broker_reasons.ADVICE
    for member in facts.members:
        asked = member.reconciliation.server_assignor if member.reconciliation is not None else None
        if asked is not None and asked != broker_reasons.ASSIGNOR:
            return broker_reasons.other_assignor(member.member_id, asked)
    return None


def seen(state: GroupState, facts: GroupFacts, *, now_ms: int) -> GroupState:
    """The state after this look at the group.

    The epoch of a KIP-848 group also rises without a move, when a member that reads nothing comes or goes, such as
    lagwise's own in a poke. So such a group counts as rebalanced when its target assignment changes, except to its
    plan's, which interrupts only the members that move.
    """
    targets_hash = _targets_hash(facts)
    if targets_hash is None or state.targets_hash is None:
        state = state.seen(facts.generation, now_ms)
        # To copy the state takes longer than to look, and most groups have no such hash.
        return state if targets_hash == state.targets_hash else replace(state, targets_hash=targets_hash)
    after = replace(state, generation=facts.generation, targets_hash=targets_hash)
    if targets_hash == state.targets_hash:
        return after
    if state.plan is not None and _is_same(_targets(facts), _parsed(state.plan.target)):
        return replace(after, since_ms=now_ms)
    return replace(after, since_ms=now_ms, rebalanced_at_ms=now_ms)


def _targets_hash(facts: GroupFacts) -> str | None:
    """Hash of the target assignment; None if it is not known, or the group is no KIP-848 group."""
    if not facts.is_kip848 or any(_why_unknown(member) for member in facts.members):
        return None
    targets = sorted((name, sorted(places)) for name, places in _targets(facts).items() if places)
    return hashlib.sha256(repr(targets).encode()).hexdigest()[:16]


def is_on_its_way(facts: GroupFacts, plan: PlanState | None) -> bool:
    """Return whether the broker may be about to apply the group's plan; it is observed while it reconciles."""
    return facts.is_kip848 and plan is not None and plan.status == "open"


def why_not_reconciled(facts: GroupFacts, *, on_its_way: bool) -> str | None:
    """Why a KIP-848 group cannot be planned, according to its records; None if it can.

    Args:
        facts: The group.
        on_its_way: See `is_on_its_way`: then it need not have arrived.
    """
    unknown = next((reason for member in facts.members if (reason := _why_unknown(member))), None)
    stuck = stuck_members(facts)
    classic = [one.member_id for one in facts.members if one.reconciliation and one.reconciliation.is_classic]
    # In this order: the first one that applies is the one that the operator has to know.
    candidates = (
        (unknown is not None, unknown),
        (facts.state is None or facts.generation is None, broker_reasons.GROUP_UNKNOWN),
        (not facts.members, reasons.NO_MEMBERS),
        (bool(stuck) and not on_its_way, broker_reasons.member_stuck("".join(stuck[:1]), facts.group_id)),
        (facts.is_between_targets and not on_its_way, reasons.not_stable(facts.state)),
        (facts.state != "Stable" and not facts.is_between_targets, reasons.not_stable(facts.state)),
        (bool(classic), broker_reasons.member_classic("".join(classic[:1]))),
    )
    return next((reason for applies, reason in candidates if applies), None)


def stuck_members(facts: GroupFacts) -> tuple[str, ...]:
    """Members that are behind their target assignment for longer than their rebalance timeout."""
    return tuple(one.member_id for one in facts.members if one.reconciliation and one.reconciliation.is_stuck)


def has_taken(facts: GroupFacts, plan: PlanState) -> bool:
    """Return whether the broker has adopted the plan's target since the plan was sent."""
    return _is_newer(facts, plan) and _is_same(_targets(facts), _parsed(plan.target))


def has_other_target(facts: GroupFacts, plan: PlanState) -> bool:
    """Return whether members are on their way to a newer target assignment that does not come from the plan.

    A target assignment without moves does not count: the broker may not have read the plan yet.
    """
    if facts.state != "Reconciling" or not _is_newer(facts, plan):
        return False
    return not any(_is_same(_targets(facts), target) for target in (_parsed(plan.target), _held(facts)))


def is_loose(plan: PlanState, published: Published, *, now_ms: int) -> bool:
    """Return whether the plan ended before it was applied, although the broker would still take its record.

    The broker compares only members and topics. Members of a classic group also compare their partitions with the base.
    """
    has_ended = plan.status not in {"open", "applied"} and plan.epoch == published.epoch
    return has_ended and published.is_valid(now_ms)


def _is_newer(facts: GroupFacts, plan: PlanState) -> bool:
    return facts.is_kip848 and facts.target_epoch is not None and facts.target_epoch > plan.base_generation


def _targets(facts: GroupFacts) -> dict[str, Places]:
    return {
        one.member_id: _places(one.reconciliation.target)
        for one in facts.members
        if one.reconciliation is not None
    }


def _held(facts: GroupFacts) -> dict[str, Places]:
    return {one.member_id: _places(one.assigned) for one in facts.members}


def _places(numbers_of: Mapping[str, Iterable[int]]) -> Places:
    return frozenset((topic, number) for topic, numbers in numbers_of.items() for number in numbers)


def _is_same(one: dict[str, Places], other: dict[str, Places]) -> bool:
    """Whether both give each partition to the same member. Members without partitions may be missing."""
    return {name: places for name, places in one.items() if places} == {
        name: places for name, places in other.items() if places
    }


def _parsed(target: Ranges) -> dict[str, Places]:
    return {
        member_id: frozenset(
            (topic, number)
            for topic, ranges in topics.items()
            for number in parse_ranges(ranges, at_most=_MOST_PARTITIONS)
        )
        for member_id, topics in target.items()
    }


def _why_unknown(member: MemberFacts) -> str | None:
    found = member.reconciliation
    what = broker_reasons.NO_RECONCILIATION if found is None else found.unknown
    return None if what is None else broker_reasons.member_unknown(member.member_id, what)
