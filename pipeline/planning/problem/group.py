"""The array form of a group that is to be decided about."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Int64s
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from pipeline.lag.lag import UNKNOWN, assignor_lag
from pipeline.planning import reasons
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.problem.capacity import Belief, Load, believed, identities, learned
from pipeline.planning.state import GroupState


def to_group(
    facts: GroupFacts, partitions: PartitionFacts, rules: Rules, state: GroupState, *, now_ms: int
) -> tuple[Group, dict[str, Belief], GroupState]:
    """The array form of the group: what each member was given in its generation is what it owns.

    Returns:
        The group, how fast each member id is taken to be (empty while nobody has shown anything), and the state with
        what members have shown by now.

    Raises:
        AbstainError: A topic's partition numbers are not contiguous, or a lag is unknown.
    """
    topics, lag = _topics(partitions), _lag(partitions, rules)
    names = identities(facts.members)
    index, drained = topics.index(), np.nan_to_num(partitions.drain_rate)
    unsettled = _unsettled(facts, rules, state, now_ms=now_ms)
    loads: dict[str, Load] = {}
    for name, member in zip(names, facts.members, strict=True):
        held = _indices(member.assigned, topics, index)
        loads[name] = Load(
            rate=float(drained[held].sum()),
            lag=float(lag[held].sum()),
            is_settled=member.member_id not in unsettled,
        )
    rates = learned(state.rates, loads, now_ms=now_ms)
    beliefs = believed(rates, loads, now_ms=now_ms)
    members = [
        Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=member.topics,
            owned=member.assigned,
            generation=facts.generation if facts.generation is not None else -1,
            capacity=beliefs[number].capacity if beliefs is not None else None,
        )
        for number, member in enumerate(facts.members)
    ]
    rate = np.nan_to_num(np.maximum(partitions.arrival_rate, 0.0))
    group = build_group(topics=topics, members=members, lag=lag, rate=rate)
    by_id = dict(zip((m.member_id for m in facts.members), beliefs, strict=True)) if beliefs else {}
    return group, by_id, replace(state, rates=rates)


def _unsettled(facts: GroupFacts, rules: Rules, state: GroupState, *, now_ms: int) -> frozenset[str]:
    """Members of whose present work less than half shows in their averages: averages are kept by partition.

    After a rebalance these are all members, which besides have read nothing for a while; after a plan those that it
    takes something from.
    """
    if now_ms - state.rebalanced_at_ms < rules.half_life_ms:
        return frozenset(member.member_id for member in facts.members)
    plan = state.plan
    if plan is None or now_ms - plan.sent_at_ms >= rules.half_life_ms:
        return frozenset()
    return frozenset(plan.revoked)


def _topics(partitions: PartitionFacts) -> Topics:
    counts: dict[str, int] = {}
    for topic in partitions.topic:
        counts[topic] = counts.get(topic, 0) + 1
    topics = Topics.of(counts)
    if not np.array_equal(topics.number_of, partitions.partition):
        first = int((topics.number_of != partitions.partition).argmax())
        raise AbstainError(reasons.partitions_not_contiguous(partitions.topic[first]))
    return topics


def _lag(partitions: PartitionFacts, rules: Rules) -> Int64s:
    lag = assignor_lag(
        partitions.committed, partitions.log_start, partitions.log_end, rules.auto_offset_reset
    )
    if (lag == UNKNOWN).any():
        first = int((lag == UNKNOWN).argmax())
        raise AbstainError(reasons.lag_unknown(f"{partitions.topic[first]}-{partitions.partition[first]}"))
    return lag


def _indices(assigned: Mapping[str, Sequence[int]], topics: Topics, index: Mapping[str, int]) -> Int64s:
    """Indices of a member's partitions; those of topics that are not among `topics` are left out."""
    pairs = [
        (index[topic], number) for topic, numbers in assigned.items() for number in numbers if topic in index
    ]
    topic, number = np.array(pairs, np.int64).reshape(-1, 2).T
    indices = topics.partition_indices(topic, number)
    return indices[indices >= 0]
