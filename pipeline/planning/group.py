"""The array form of a group that is to be decided about."""

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Int64s
from assignor.model.group import LEAST_CAPACITY, Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from pipeline.lag.lag import UNKNOWN, assignor_lag
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules

_BACKLOG_S = 10.0
"""Lag of so many seconds of draining is a backlog. Less is what lies between two commits of a member that keeps
up: a client commits every 5 s by default (auto.commit.interval.ms), and the batch looks some time later."""


def to_group(facts: GroupFacts, partitions: PartitionFacts, rules: Rules) -> Group:
    """The array form of the group: what each member was given in its generation is what it owns.

    Raises:
        AbstainError: A topic's partitions are not numbered through, or a lag is not known.
    """
    counts: dict[str, int] = {}
    for topic in partitions.topic:
        counts[topic] = counts.get(topic, 0) + 1
    topics = Topics.of(counts)
    if not np.array_equal(topics.number_of, partitions.partition):
        raise AbstainError(
            "the partitions of a topic are not numbered through: it is being created or deleted"
        )
    lag = assignor_lag(
        partitions.committed, partitions.log_start, partitions.log_end, rules.auto_offset_reset
    )
    if (lag == UNKNOWN).any():
        raise AbstainError(f"lag of {topics.name(int((lag == UNKNOWN).argmax()))} is not known")
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
        pairs = [
            (index[topic], number)
            for topic, numbers in member.assigned.items()
            for number in numbers
            if topic in index
        ]
        pid = topics.partition_indices(
            np.array([topic for topic, _ in pairs], np.int64),
            np.array([number for _, number in pairs], np.int64),
        )
        pid = pid[pid >= 0]
        rate = float(drained[pid].sum())
        seen.append(rate)
        # The moving average of a member that got stuck halves for ever.
        rates.append(max(rate, LEAST_CAPACITY) if rate > 0 and lag[pid].sum() > _BACKLOG_S * rate else None)
    shown = [rate for rate in rates if rate is not None]
    if not shown:
        return rates
    likely = float(np.median(shown))
    return [max(likely, least) if rate is None else rate for rate, least in zip(rates, seen, strict=True)]
