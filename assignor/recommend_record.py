"""What a decision says in names: assignments by member, moves, and the control record."""

import numpy as np

from assignor.arrays import Int32s, Int64s
from assignor.assignment import Assignment, Unassigned
from assignor.group import Group
from assignor.plan_facts import Decision, GroupFacts, Move, Rules
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord, encode
from assignor.protocol.ranges import format_ranges

Partitions = dict[str, tuple[int, ...]]


def by_member(group: Group, member: Int32s) -> dict[str, dict[str, str]]:
    """Member id -> topic -> ranges; a member without partitions has an empty entry."""
    return {
        member_id: _ranges(_by_topic(group, np.flatnonzero(member == index)))
        for index, member_id in enumerate(group.member_ids)
    }


def unassigned_ranges(group: Group, target: Assignment) -> dict[str, dict[str, str]]:
    """Reason -> topic -> ranges of the partitions that the target gives to nobody."""
    return {reason: _ranges(partitions) for reason, partitions in _unassigned(group, target).items()}


def group_moves(group: Group, target: Assignment) -> tuple[Move, ...]:
    """Every partition whose owner changes, by topic and number."""
    names = (*group.member_ids, None)
    holder = group.ownership.holder
    return tuple(
        Move(
            topic=group.topics.names[group.topics.topic_of[pid]],
            partition=int(group.topics.number_of[pid]),
            from_member=names[holder[pid]],
            to_member=names[target.member[pid]],
            lag=int(group.lag[pid]),
        )
        for pid in np.flatnonzero(holder != target.member).tolist()
    )


def to_record(
    facts: GroupFacts, rules: Rules, group: Group, target: Assignment, decision: Decision, *, now_ms: int
) -> str:
    """Value of the control record for a decision to publish.

    Raises:
        ControlRecordTooLargeError: It is larger than `rules.max_record_bytes`.
    """
    index = {member_id: number for number, member_id in enumerate(group.member_ids)}
    record = ControlRecord(
        cluster=rules.cluster,
        group=facts.group_id,
        epoch=decision.epoch or 0,
        strategy=rules.strategy,
        dry_run=rules.dry_run,
        created_at_ms=now_ms,
        valid_until_ms=decision.valid_until_ms or now_ms,
        base_generation=facts.generation or 0,
        base_protocol=facts.assignor or "",
        members={
            member.member_id: ControlMember(
                instance=member.instance_id,
                client=member.client_id or "",
                host=member.client_host or "",
                base=_held(group, group.ownership.holder, index[member.member_id]),
                target=_held(group, target.member, index[member.member_id]),
            )
            for member in facts.members
        },
        moves=tuple(
            ControlMove(topic=m.topic, partition=m.partition, giver=m.from_member, taker=m.to_member)
            for m in decision.moves
        ),
        unassigned=_unassigned(group, target),
        why=ControlReasons(
            drain_s_before=decision.drain_s_before,
            drain_s_after=decision.drain_s_after,
            drain_s_bound=decision.drain_s_bound,
            lag=int(group.lag.sum()),
        ),
    )
    return encode(record, limit_bytes=rules.max_record_bytes).decode()


def _held(group: Group, member: Int32s, index: int) -> Partitions:
    return _by_topic(group, np.flatnonzero(member == index))


def _unassigned(group: Group, target: Assignment) -> dict[str, Partitions]:
    return {
        why.words: _by_topic(group, np.flatnonzero(target.why == why))
        for why in Unassigned
        if why != Unassigned.ASSIGNED and (target.why == why).any()
    }


def _by_topic(group: Group, pids: Int64s) -> Partitions:
    topics = group.topics.topic_of[pids]
    numbers = group.topics.number_of[pids]
    return {
        group.topics.names[topic]: tuple(numbers[topics == topic].tolist())
        for topic in dict.fromkeys(topics.tolist())
    }


def _ranges(partitions: Partitions) -> dict[str, str]:
    return {topic: format_ranges(numbers) for topic, numbers in partitions.items()}
