"""The leader of a group applies a published plan as a whole, or not at all.

A plan fits if the group is still the one that it was made for: the member ids are the same; the plan gives each
subscribed partition to exactly one member, which reads its topic; some member claims the base generation or a newer
one; and the owner of each partition is the one in the base or in the target, so that a plan still fits while a
cooperative hand-over is half done. Otherwise a strategy of this package assigns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np

from assignor.clients.plugin.dialect import OURS, Dialect, Joined
from assignor.clients.plugin.lags import Lags
from assignor.clients.plugin.user_data import SubscriptionData
from assignor.errors import UnequalSubscriptionsError
from assignor.model.arrays import Bools, Int8s, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import Placed, by_member
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from assignor.protocol.control import ControlRecord
from assignor.protocol.kafka.consumer import NO_GENERATION, TopicPartitions
from assignor.strategies.catalogue import CATALOGUE, StrategyFacts
from assignor.strategies.handover import next_step
from assignor.strategies.names import STICKY
from assignor.strategies.registry import STRATEGIES, Strategy
from assignor.strategies.sticky import strategy as sticky


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeaderDecision:
    """The leader's assignment, and the reason for it."""

    group: Group
    """The group as its members describe it."""
    target: Assignment
    """Final owner of every partition."""
    step: Assignment
    """Assignment for now: the target, without partitions that a cooperative member has yet to revoke."""
    plan_epoch: int | None
    """Epoch of the plan whose target it is; None if the strategy assigned."""
    why: str
    """One sentence for the log."""
    generation: int
    """Newest generation, or epoch of KIP-315, of any claim; `NO_GENERATION` without claims."""

    def placed(self) -> dict[str, Placed]:
        """The step in names, by member id."""
        return by_member(self.group, self.step.member)

    def arrived(self, placed: Mapping[str, TopicPartitions]) -> frozenset[str]:
        """Members whose target is `placed`."""
        target = by_member(self.group, self.target.member)
        return frozenset(member_id for member_id in placed if placed[member_id] == target[member_id])


def decide(
    *,
    counts: Mapping[str, int],
    members: Sequence[Joined],
    strategy: StrategyFacts,
    plan: ControlRecord | None,
    dialect: Dialect = OURS,
    lags: Lags | None = None,
) -> LeaderDecision:
    """Assign by the plan if it fits, otherwise by the strategy.

    Args:
        counts: Partitions of every subscribed topic that has metadata.
        members: All members, in any order.
        strategy: Used if there is no plan, or it does not fit. If it needs equal subscriptions and they differ, or
            needs a lag that is unknown, `sticky` replaces it: a leader that raised would stop its group.
        plan: From `ControlState.plan`, so neither expired nor withdrawn nor a dry run.
        dialect: Format of the members' user data.
        lags: Known lags; None if none are known.

    Raises:
        InvalidGroupError: A member id occurs twice.
    """
    topics = Topics.of(counts)
    subscription_data = {member.member_id: dialect.hear(member) for member in members}
    group = _group(topics, members, subscription_data)
    newest = max((one.claims.generation for one in subscription_data.values()), default=NO_GENERATION)
    problem = "no plan" if plan is None else _misfit(plan, group, newest)
    if plan is not None and problem is None:
        target, why, epoch = _target(plan, group), "the plan fits", plan.epoch
        joins = _joins(plan)
    else:
        target, why = _assign(group, STRATEGIES[strategy.name], lags, problem or "")
        joins, epoch = strategy.joins, None
    holding = {name: one for name, one in subscription_data.items() if one.held}
    step = next_step(_group(topics, members, holding), target, by_number=joins) if holding else target
    return LeaderDecision(group=group, target=target, step=step, plan_epoch=epoch, why=why, generation=newest)


def _joins(plan: ControlRecord) -> bool:
    """Whether the strategy of the plan, if it is known here, joins topics."""
    return plan.strategy in CATALOGUE and CATALOGUE[plan.strategy].joins


def _group(
    topics: Topics, members: Sequence[Joined], subscription_data: Mapping[str, SubscriptionData]
) -> Group:
    """The group with the claims of those members that have subscription data."""
    return build_group(
        topics=topics,
        members=[_member(member, subscription_data.get(member.member_id)) for member in members],
    )


def _member(joined: Joined, data: SubscriptionData | None) -> Member:
    return Member(
        member_id=joined.member_id,
        topics=joined.topics,
        instance_id=joined.instance_id,
        owned={} if data is None else data.claims.owned,
        generation=NO_GENERATION if data is None else data.claims.generation,
    )


def _assign(group: Group, strategy: Strategy, lags: Lags | None, why: str) -> tuple[Assignment, str]:
    if strategy.reads_lag:
        return _assign_by_lag(group, strategy, lags, why)
    try:
        return strategy.assign(group, {}), f"{strategy.name}: {why}"
    except UnequalSubscriptionsError as error:
        return sticky.assign(group), f"{STICKY}: {error}"


def _assign_by_lag(group: Group, strategy: Strategy, lags: Lags | None, why: str) -> tuple[Assignment, str]:
    if lags is None:
        return sticky.assign(group), f"{STICKY}: no lag is known"
    topics = group.topics
    places = [(topics.names[t], int(n)) for t, n in zip(topics.topic_of, topics.number_of, strict=True)]
    unknown = sum(place not in lags for place in places)
    if unknown:
        return sticky.assign(group), f"{STICKY}: lag of {unknown} partitions is not known"
    weighed = replace(group, lag=np.array([lags[place] for place in places], np.int64))
    return strategy.assign(weighed, {}), f"{strategy.name}: {why}"


def _misfit(plan: ControlRecord, group: Group, newest: int) -> str | None:
    """Why the plan does not fit, in words; None if it does."""
    strangers = set(plan.members) ^ set(group.member_ids)
    if strangers:
        return f"plan {plan.epoch} is for other members, {len(strangers)} differ"
    if newest < plan.base_generation:
        return (
            f"plan {plan.epoch} is of generation {plan.base_generation}, no member knows one after {newest}"
        )
    index = group.topics.index()
    targets = [_partition_indices(group.topics, index, member.target) for member in plan.members.values()]
    if any((indices < 0).any() for indices in targets):
        return f"plan {plan.epoch} places partitions that are not there"
    for words, broken in _broken(plan, group, targets).items():
        if broken.any():
            return f"plan {plan.epoch} {words} {group.topics.name(int(np.argmax(broken)))}"
    return None


def _broken(plan: ControlRecord, group: Group, targets: list[Int64s]) -> dict[str, Bools]:
    """For each rule, the partitions that break it."""
    holder, target = group.ownership.holder, _owners(group, plan, which="target")
    base = _owners(group, plan, which="base")
    left_out = _left_out(plan, group)
    times = np.bincount(np.concatenate([*targets, np.nonzero(left_out)[0]]), minlength=group.n_partitions)
    allowed = group.subscriptions.allows(group.topics.topic_of, np.maximum(target, 0))
    return {
        "does not give exactly one place to": group.readable() & (times != 1),
        "gives to a member that does not read it": (target >= 0) & ~allowed,
        "meets two claims of one generation on": group.ownership.contested,
        "is neither from nor for the owner of": (holder >= 0) & (holder != base) & (holder != target),
    }


def _target(plan: ControlRecord, group: Group) -> Assignment:
    """The target of a plan that fits."""
    complete = Assignment.complete(group, _owners(group, plan, which="target"))
    return Assignment(
        member=complete.member, why=np.where(group.readable(), _left_out(plan, group), complete.why)
    )


def _owners(group: Group, plan: ControlRecord, *, which: Literal["base", "target"]) -> Int32s:
    """Member index of each partition in the base or the target of the plan, -1 for none."""
    owner = np.full(group.n_partitions, -1, np.int32)
    index = group.topics.index()
    for rank, member_id in enumerate(group.member_ids):
        member = plan.members[member_id]
        indices = _partition_indices(group.topics, index, member.target if which == "target" else member.base)
        owner[indices[indices >= 0]] = rank
    return owner


_LEFT_OUT = {why.words: why for why in (Unassigned.BEYOND_JOIN, Unassigned.OWNER_DOES_NOT_READ)}


def _left_out(plan: ControlRecord, group: Group) -> Int8s:
    """Why the plan has no member for a partition; 0 where it does not say so, or gives no reason known here."""
    why = np.zeros(group.n_partitions, np.int8)
    index = group.topics.index()
    for words, by_topic in plan.unassigned.items():
        indices = _partition_indices(group.topics, index, by_topic)
        why[indices[indices >= 0]] = _LEFT_OUT.get(words, Unassigned.ASSIGNED)
    return why


def _partition_indices(topics: Topics, index: Mapping[str, int], by_topic: TopicPartitions) -> Int64s:
    """Partition indices, -1 for each that is not there."""
    lengths = [len(numbers) for numbers in by_topic.values()]
    topic = np.array([index.get(name, -1) for name in by_topic], np.int32).repeat(lengths)
    number = np.fromiter(chain.from_iterable(by_topic.values()), np.int64, sum(lengths))
    return topics.partition_indices(topic, number)
