"""Decide about one group: publish a target, leave it as it is, or abstain, and say why.

A pure function of what is known of the group, what was published before, and the time: the same facts give
the same record, byte for byte.
"""

import hashlib
import json
import math
from dataclasses import replace

import numpy as np

from assignor.arrays import Int64s
from assignor.assignment import Assignment
from assignor.drain import drain_s, lag_imbalance
from assignor.drain_bound import lower_bound_s
from assignor.errors import AbstainError, AssignorError
from assignor.group import LEAST_CAPACITY, Group
from assignor.lag import UNKNOWN, assignor_lag
from assignor.members import Member, build_group
from assignor.plan_facts import Decision, GroupFacts, PartitionFacts, Published, Rules
from assignor.recommend_record import group_moves, ranges_by_member, to_record, unassigned_ranges
from assignor.refusals import refuse_data, refuse_group
from assignor.registry import strategy
from assignor.topics import Topics
from assignor.verify import check

_BACKLOG_S = 10.0
"""Lag of so many seconds of draining is a backlog. Less is what lies between two commits of a member that keeps
up: a client commits every 5 s by default (auto.commit.interval.ms), and the batch looks some time later."""


def decide(
    facts: GroupFacts, partitions: PartitionFacts, rules: Rules, published: Published | None, *, now_ms: int
) -> Decision:
    """What to do about the group now.

    A plan is published when its target or the base it starts from is another than that of the newest
    published plan, and again before that one expires. A group that has its target already, with no other plan
    out, is left alone.

    Args:
        facts: The group's newest record.
        partitions: Every partition of the topics it subscribes to.
        rules: What the operator wants.
        published: The newest plan of the group, if there is one.
        now_ms: Time of the decision, ms since the epoch.
    """
    try:
        refuse_group(facts, rules)
        refuse_data(facts, partitions, rules, now_ms=now_ms)
        group = to_group(facts, partitions, rules)
        target = strategy(rules.strategy).assign(group, rules.options)
        check(group, target)
        return _decision(facts, rules, group, target, published, now_ms=now_ms)
    except AssignorError as error:
        return Decision(
            decided="abstain", reason=str(error), strategy=rules.strategy, base_generation=facts.generation
        )


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
    """
    index = topics.index()
    drained = np.nan_to_num(partitions.drain_rate)
    rates: list[float | None] = []
    for member in facts.members:
        pairs = [
            (index[topic], number)
            for topic, numbers in member.assigned.items()
            for number in numbers
            if topic in index
        ]
        pid = topics.pids(
            np.array([topic for topic, _ in pairs], np.int64),
            np.array([number for _, number in pairs], np.int64),
        )
        pid = pid[pid >= 0]
        rate = float(drained[pid].sum())
        # The moving average of a member that got stuck halves for ever.
        rates.append(max(rate, LEAST_CAPACITY) if rate > 0 and lag[pid].sum() > _BACKLOG_S * rate else None)
    return rates


def _decision(
    facts: GroupFacts,
    rules: Rules,
    group: Group,
    target: Assignment,
    published: Published | None,
    *,
    now_ms: int,
) -> Decision:
    base = ranges_by_member(group, group.ownership.holder)
    wanted = ranges_by_member(group, target.member)
    subscribed = sorted((member.member_id, *sorted(member.topics)) for member in facts.members)
    decision = Decision(
        decided="unchanged",
        strategy=rules.strategy,
        base_generation=facts.generation,
        base_hash=_hash([facts.generation, facts.assignor, base, subscribed]),
        target_hash=_hash([rules.strategy, wanted, unassigned_ranges(group, target)]),
        assignment=wanted,
        moves=group_moves(group, target),
        drain_s_before=_finite(drain_s(group, group.ownership.holder)),
        drain_s_after=_finite(drain_s(group, target.member)),
        drain_s_bound=_finite(lower_bound_s(group)),
        imbalance_before=lag_imbalance(group, group.ownership.holder),
        imbalance_after=lag_imbalance(group, target.member),
    )
    reason = _why_unchanged(decision, rules, published, now_ms=now_ms)
    if reason is not None:
        return replace(decision, reason="; ".join((reason, *target.remarks)))
    if rules.dry_run:
        return replace(decision, decided="dry_run", reason="plan.dry_run is on: nothing is published")
    epoch = (published.epoch if published else 0) + 1
    valid_until_ms = now_ms + rules.valid_for_ms
    decision = replace(decision, decided="publish", epoch=epoch, valid_until_ms=valid_until_ms)
    return replace(decision, record=to_record(facts, rules, group, target, decision, now_ms=now_ms))


def _why_unchanged(
    decision: Decision, rules: Rules, published: Published | None, *, now_ms: int
) -> str | None:
    """Why nothing is to be published; None when something is."""
    is_out = published is not None and published.valid_until_ms > now_ms
    is_same = published is not None and (published.target_hash, published.base_hash) == (
        decision.target_hash,
        decision.base_hash,
    )
    if not decision.moves and (is_same or not is_out):
        return "the group has its target assignment"
    # Half of its life before a plan expires there is still time for the next one to be missed.
    if published is not None and is_same and published.valid_until_ms - now_ms > rules.valid_for_ms // 2:
        return f"plan epoch {published.epoch} still says so"
    return None


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
