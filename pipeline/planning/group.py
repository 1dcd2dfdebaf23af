"""The array form of a group that is to be decided about."""

from collections.abc import Mapping, Sequence

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Int64s
from assignor.model.group import LEAST_CAPACITY, Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from pipeline.lag.lag import UNKNOWN, assignor_lag
from pipeline.planning import reasons
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules

_BACKLOG_S = 10.0
"""Lag of so many seconds of draining is a backlog. Less is what lies between two commits of a member that keeps
up: a client commits every 5 s by default (auto.commit.interval.ms), and the batch looks some time later."""


def to_group(facts: GroupFacts, partitions: PartitionFacts, rules: Rules) -> Group:
    """The array form of the group: what each member was given in its generation is what it owns.

    Raises:
        AbstainError: A topic's partition numbers are not contiguous, or a lag is unknown.
    """
    counts: dict[str, int] = {}
    for topic in partitions.topic:
        counts[topic] = counts.get(topic, 0) + 1
    topics = Topics.of(counts)
    if not np.array_equal(topics.number_of, partitions.partition):
        first = int((topics.number_of != partitions.partition).argmax())
        raise AbstainError(reasons.partitions_not_contiguous(partitions.topic[first]))
    lag = assignor_lag(
        partitions.committed, partitions.log_start, partitions.log_end, rules.auto_offset_reset
    )
    if (lag == UNKNOWN).any():
        raise AbstainError(reasons.lag_unknown(topics.name(int((lag == UNKNOWN).argmax()))))
    capacity = _capacity(facts, partitions, topics, lag)
    members = [
        Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=member.topics,
            owned=member.assigned,
            generation=facts.generation if facts.generation is not None else -1,
            capacity=capacity[index],
        )
        for index, member in enumerate(facts.members)
    ]
    return build_group(
        topics=topics, members=members, lag=lag, rate=np.nan_to_num(np.maximum(partitions.arrival_rate, 0.0))
    )


def _capacity(
    facts: GroupFacts, partitions: PartitionFacts, topics: Topics, lag: Int64s
) -> list[float | None]:
    """Records/s that each member drains while it has a backlog, the only time when it shows its capacity.

    A backlog of which nothing was ever seen to be drained (rates of 0 or unknown, `rates.drain_rate`) shows
    none. Its member may be stuck, but so looks one that has only just started on partitions without a commit
    or with offsets that were reset, and as slow as it looks everything would go to whoever commits first. So
    it counts as fast as the others, its backlog is levelled like theirs, and with the partitions that it takes
    over from a member that drains come rates above 0, which fall as long as it stands still: then it is slow.

    A member without a backlog has no limit that shows. It counts as fast as the others, but never slower than it is:
    where a single slow member shows its capacity, the others are not taken to be like it.
    """
    index = topics.index()
    drained = np.nan_to_num(partitions.drain_rate)
    rates: list[float | None] = []
    seen: list[float] = []
    for member in facts.members:
        pid = _pids(member.assigned, topics, index)
        rate = float(drained[pid].sum())
        seen.append(rate)
        # The moving average of a member that got stuck halves for ever.
        rates.append(max(rate, LEAST_CAPACITY) if rate > 0 and lag[pid].sum() > _BACKLOG_S * rate else None)
    shown = [rate for rate in rates if rate is not None]
    if not shown:
        return rates
    likely = float(np.median(shown))
    return [max(likely, least) if rate is None else rate for rate, least in zip(rates, seen, strict=True)]


def _pids(assigned: Mapping[str, Sequence[int]], topics: Topics, index: Mapping[str, int]) -> Int64s:
    """Indices of a member's partitions; those of topics that are not among `topics` are left out."""
    pairs = [
        (index[topic], number) for topic, numbers in assigned.items() for number in numbers if topic in index
    ]
    topic, number = np.array(pairs, np.int64).reshape(-1, 2).T
    pid = topics.partition_indices(topic, number)
    return pid[pid >= 0]
