"""Why no plan is made for a group: everything that has to be known and true first."""

from collections import Counter

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Bools
from pipeline.lag.lag import UNKNOWN
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.broker_groups import why_not_reconciled
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules

# A member on Kafka Streams' own assignor is given tasks, which its partitions only follow.
_STREAMS_ASSIGNOR = "stream"
_MOST_OLD = 0.25
"""Share of partitions: a leader is missing, not a broker of three, after which members stand still as well."""


def require_plannable_group(facts: GroupFacts, rules: Rules, *, on_its_way: bool) -> None:
    """Return if lagwise can plan the group, or evaluate its plan.

    Args:
        facts: The group.
        rules: Of the group.
        on_its_way: See `broker_groups.is_on_its_way`.

    Raises:
        AbstainError: It is not; the message says why.
    """
    reason = why_not_plannable(facts, is_excluded=rules.exclude, on_its_way=on_its_way)
    if reason is not None:
        raise AbstainError(reason)


def why_not_plannable(facts: GroupFacts, *, is_excluded: bool, on_its_way: bool) -> str | None:
    """Return why the group gets no plan, whatever its lag; None if it may get one, or its plan is on its way."""
    return (
        _why_not_of_a_kind(facts, is_excluded=is_excluded, on_its_way=on_its_way)
        or paused_reason(facts)
        or next(
            (
                reasons.unreadable_subscription(member.member_id, member.error)
                for member in facts.members
                if member.error is not None
            ),
            None,
        )
    )


def _why_not_of_a_kind(facts: GroupFacts, *, is_excluded: bool, on_its_way: bool) -> str | None:
    # In this order: the first one that applies is the one that the operator has to know.
    candidates = (
        (is_excluded, reasons.EXCLUDED),
        (facts.provisional is not None, reasons.provisional(facts.provisional or "")),
        (facts.group_type is None, reasons.NO_MEMBERS_NO_RECORD),
        (facts.group_type in {"share", "streams"}, reasons.broker_assigns(facts.group_type or "")),
        (facts.mistakable is not None, facts.mistakable),
    )
    reason = next((reason for applies, reason in candidates if applies), None)
    if reason is not None:
        return reason
    return why_not_reconciled(facts, on_its_way=on_its_way) if facts.is_kip848 else _why_not_classic(facts)


def _why_not_classic(facts: GroupFacts) -> str | None:
    candidates = (
        (not facts.members, reasons.NO_MEMBERS),
        (facts.protocol_type != "consumer", reasons.not_consumers(facts.protocol_type)),
        (facts.assignor == _STREAMS_ASSIGNOR, reasons.KAFKA_STREAMS),
        (facts.state != "Stable", reasons.not_stable(facts.state)),
        (facts.generation is None, reasons.GENERATION_UNKNOWN),
    )
    return next((reason for applies, reason in candidates if applies), None)


def require_owned(facts: GroupFacts, partitions: PartitionFacts) -> None:
    """Return if no partition has two owners and, in a KIP-848 group, each that it subscribes to has one.

    A partition of a classic group may be without an owner until its leader assigns it, one of a KIP-848 group while the
    group is between two targets. Two owners are no state on the way to another one: what counts are the partitions that
    one leader gave in one generation, less those handed over since, and not what members claim.

    Raises:
        AbstainError: A partition has two owners, or none; the message names it.
    """
    owners = Counter(
        (topic, number)
        for member in facts.members
        for topic, numbers in member.assigned.items()
        for number in set(numbers)
    )
    _require_one_each(facts, owners)
    if not facts.is_kip848 or facts.is_between_targets:
        return
    subscribed = zip(partitions.topic, partitions.partition.tolist(), strict=True)
    unowned = [place for place in subscribed if place not in owners]
    if unowned:
        raise AbstainError(broker_reasons.unowned("{}-{}".format(*unowned[0]), len(unowned) - 1))


def _require_one_each(facts: GroupFacts, owners: Counter[tuple[str, int]]) -> None:
    twice = [place for place, count in owners.items() if count > 1]
    if not twice:
        return
    first, others = "{}-{}".format(*min(twice)), len(twice) - 1
    if facts.is_kip848:
        raise AbstainError(broker_reasons.owned_twice(first, others))
    raise AbstainError(reasons.given_to_several(first, others, facts.assignor))


def paused_reason(facts: GroupFacts) -> str | None:
    """Return who has paused the group, and why; None if it is not paused."""
    orders = facts.orders
    if orders is None or not orders.paused:
        return None
    return reasons.paused(orders.by, orders.pause_reason, facts.group_id)


def old_offsets(facts: GroupFacts, partitions: PartitionFacts, rules: Rules, *, now_ms: int) -> Bools:
    """P entries: are the partition's log offsets old, because its brokers do not answer; those of most are fresh.

    Raises:
        AbstainError: Offsets are not known, or old for more than a quarter of the partitions, or for one in which the
            group has read on since; the message names a partition and what is wrong with it.
    """
    old = _unanswered(partitions) | _stale(partitions, rules, now_ms=now_ms)
    reason = _why_unlisted(facts, partitions) or _why_not_known(partitions)
    has_read_on = old & _has_read_on(partitions, rules)
    if reason is None and (has_read_on.any() or int(old.sum()) > _MOST_OLD * len(old)):
        reason = why_old(partitions, rules, now_ms=now_ms)
    if reason is not None:
        raise AbstainError(reason)
    return old


def why_old(partitions: PartitionFacts, rules: Rules, *, now_ms: int) -> str | None:
    """Why log offsets are old, naming a partition; None when all are fresh."""
    if found := _first_of(partitions, _unanswered(partitions)):
        error = next(error for error in partitions.unanswered if error)
        return reasons.log_offsets_unanswered(*found, error)
    if found := _first_of(partitions, _stale(partitions, rules, now_ms=now_ms)):
        return reasons.log_offsets_stale(*found, rules.max_staleness_ms // 1000)
    return None


def _has_read_on(partitions: PartitionFacts, rules: Rules) -> Bools:
    """P entries: does the group read beyond the last known log end, and so only lagwise cannot ask the leader.

    The last known lag, 0, would make the owner look idle. Without a leader nobody reads on for long, and a member
    repeats its last commit at most.
    """
    if not len(partitions.commit_ahead_s):
        return np.zeros(len(partitions.topic), np.bool_)
    is_beyond: Bools = (partitions.committed > partitions.log_end) & (partitions.commit_rate > 0)
    return is_beyond & (partitions.commit_ahead_s * 1000 > rules.max_staleness_ms)


def _unanswered(partitions: PartitionFacts) -> Bools:
    if not any(partitions.unanswered):
        return np.zeros(len(partitions.topic), np.bool_)
    return np.array([bool(error) for error in partitions.unanswered], np.bool_)


def _stale(partitions: PartitionFacts, rules: Rules, *, now_ms: int) -> Bools:
    stale: Bools = partitions.observed_at_ms < now_ms - rules.max_staleness_ms
    return stale


def _why_unlisted(facts: GroupFacts, partitions: PartitionFacts) -> str | None:
    # Each topic's last entry has its greatest number.
    last = dict(zip(partitions.topic, partitions.partition.tolist(), strict=True))
    for member in facts.members:
        unlisted = sorted(topic for topic, held in member.assigned.items() if held and topic not in last)
        if unlisted:
            return reasons.unlisted_topic(unlisted[0])
        for topic, held in member.assigned.items():
            # A plan would leave it out, and a member that follows would stop reading it.
            if held and max(held) > last[topic]:
                return reasons.unlisted_partition(f"{topic}-{max(held)}", topic, last[topic])
    return None if partitions.topic else reasons.NO_TOPICS


def _why_not_known(partitions: PartitionFacts) -> str | None:
    if found := _first_of(partitions, partitions.log_end == UNKNOWN):
        # Why there is none says more than that there is none.
        error = next((error for error in partitions.unanswered if error), None)
        return reasons.log_offsets_unanswered(*found, error) if error else reasons.log_end_unknown(*found)
    found = _first_of(partitions, partitions.incomparable)
    return reasons.commit_of_deleted_topic(*found) if found else None


def _first_of(partitions: PartitionFacts, affected: Bools) -> tuple[str, int] | None:
    """The first affected partition and how many others there are; None for none."""
    if not affected.any():
        return None
    return _name(partitions, int(affected.argmax())), int(affected.sum()) - 1


def _name(partitions: PartitionFacts, index: int) -> str:
    return f"{partitions.topic[index]}-{int(partitions.partition[index])}"
