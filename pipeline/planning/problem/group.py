"""The array form of a group that is to be decided about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Int64s
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from pipeline.lag.lag import UNKNOWN, assignor_lag
from pipeline.planning import reasons
from pipeline.planning.facts import GroupFacts, MemberFacts, PartitionFacts, Rules
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
    held = _held(facts.members, topics, index)
    loads = {
        name: Load(
            rate=float(drained[own].sum()),
            lag=float(lag[own].sum()),
            is_settled=member.member_id not in unsettled,
        )
        for name, member, own in zip(names, facts.members, held, strict=True)
    }
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
    topics = Topics.of(Counter(partitions.topic))
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


def _held(members: Sequence[MemberFacts], topics: Topics, index: Mapping[str, int]) -> list[Int64s]:
    """Indices of each member's partitions; those that do not exist are left out."""
    # All members in one pass: there are thousands of groups, and a call of numpy costs as much as a small member.
    named = [
        (index.get(topic, -1), numbers) for member in members for topic, numbers in member.assigned.items()
    ]
    lengths = [len(numbers) for _, numbers in named]
    topic = np.repeat(np.array([of_topic for of_topic, _ in named], np.int64), lengths)
    number = np.fromiter(chain.from_iterable(numbers for _, numbers in named), np.int64, len(topic))
    indices = topics.partition_indices(topic, number)
    ends = list(accumulate(sum(map(len, member.assigned.values())) for member in members))
    own = [indices[begin:end] for begin, end in pairwise([0, *ends])]
    return own if (indices >= 0).all() else [some[some >= 0] for some in own]
