"""A decision by names: assignments by member, moves, and the control record."""

import numpy as np

from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import Placed, by_member, by_topic
from assignor.model.group import Group
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord, encode
from assignor.protocol.ranges import format_ranges
from pipeline.planning.facts import Decision, GroupFacts, Move, Rules


def ranges_by_member(group: Group, member: Int32s) -> dict[str, dict[str, str]]:
    """Member id -> topic -> ranges; a member without partitions has an empty entry."""
    return {member_id: _ranges(placed) for member_id, placed in by_member(group, member).items()}


def revoked_ranges(group: Group, target: Assignment) -> dict[str, dict[str, str]]:
    """What the target revokes: member id -> topic -> ranges, without members that keep everything."""
    holder = group.ownership.holder
    revoked = ranges_by_member(group, np.where(holder != target.member, holder, np.int32(-1)))
    return {member_id: topics for member_id, topics in revoked.items() if topics}


def unassigned_ranges(group: Group, target: Assignment) -> dict[str, dict[str, str]]:
    """Reason -> topic -> ranges of the partitions that the target leaves without an owner."""
    return {reason: _ranges(partitions) for reason, partitions in _unassigned(group, target).items()}


def group_moves(group: Group, target: Assignment) -> tuple[Move, ...]:
    """Every partition whose owner changes, by topic and number."""
    names = (*group.member_ids, None)
    holder = group.ownership.holder
    return tuple(
        Move(
            topic=group.topics.names[group.topics.topic_of[index]],
            partition=int(group.topics.number_of[index]),
            from_member=names[holder[index]],
            to_member=names[target.member[index]],
            lag=int(group.lag[index]),
        )
        for index in np.flatnonzero(holder != target.member).tolist()
    )


def to_record(
    facts: GroupFacts, rules: Rules, group: Group, target: Assignment, decision: Decision, *, now_ms: int
) -> str:
    """Value of the control record for a decision to publish.

    Raises:
        ControlRecordTooLargeError: It is larger than `rules.max_record_bytes`.
    """
    base, wanted = by_member(group, group.ownership.holder), by_member(group, target.member)
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
        migration=rules.migration,
        members={
            member.member_id: ControlMember(
                instance=member.instance_id,
                client=member.client_id or "",
                host=member.client_host or "",
                base=base[member.member_id],
                target=wanted[member.member_id],
            )
            for member in facts.members
        },
        moves=tuple(
            ControlMove(
                topic=m.topic, partition=m.partition, from_member=m.from_member, to_member=m.to_member
            )
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


def _unassigned(group: Group, target: Assignment) -> dict[str, Placed]:
    return {
        why.words: by_topic(group.topics, np.flatnonzero(target.why == why))
        for why in Unassigned
        if why != Unassigned.ASSIGNED and (target.why == why).any()
    }


def _ranges(placed: Placed) -> dict[str, str]:
    return {topic: format_ranges(numbers) for topic, numbers in placed.items()}
