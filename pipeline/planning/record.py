"""A decision by names: assignments by member, moves, and the control record."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping

import numpy as np

from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s, lag_imbalance
from assignor.model.arrays import Bools, Int32s, Int64s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import Placed, by_holder, by_member, by_topic, run_starts
from assignor.model.group import Group
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord, encode
from assignor.protocol.ranges import format_ranges, format_spans
from pipeline.planning.facts import GroupFacts, Rules
from pipeline.planning.values import Figures, Move, Sent, Target

# `json.dumps` makes an encoder for each call.
_encoded = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode


def ranges_by_member(group: Group, member: Int32s) -> dict[str, dict[str, str]]:
    """Member id -> topic -> ranges; a member without partitions has an empty entry."""
    partitions = by_holder(member, group.n_members)
    holder, topic = member[partitions], group.topics.topic_of[partitions]
    # Over a run of neighbours the index of a partition less its place stays the same.
    firsts = run_starts(holder, topic, partitions - np.arange(len(partitions)))
    lasts = np.append(firsts[1:], len(partitions))[: len(firsts)] - 1
    number = group.topics.number_of[partitions]
    ends = (of_span.tolist() for of_span in (holder[firsts], topic[firsts], number[firsts], number[lasts]))
    spans: dict[str, dict[str, list[tuple[int, int]]]] = {member_id: {} for member_id in group.member_ids}
    for of_member, of_topic, first, last in zip(*ends, strict=True):
        placed = spans[group.member_ids[of_member]]
        placed.setdefault(group.topics.names[of_topic], []).append((first, last))
    return {
        member_id: {name: format_spans(of_topic) for name, of_topic in placed.items()}
        for member_id, placed in spans.items()
    }


def ranges_of(group: Group, chosen: Bools) -> dict[str, str]:
    """Topic -> ranges of the partitions that are chosen."""
    return _ranges(by_topic(group.topics, np.flatnonzero(chosen)))


def revoked_ranges(group: Group, target: Assignment) -> dict[str, dict[str, str]]:
    """Return what the target revokes: member id -> topic -> ranges, without members that keep everything."""
    holder = group.ownership.holder
    revoked = ranges_by_member(group, np.where(holder != target.member, holder, np.int32(-1)))
    return {member_id: topics for member_id, topics in revoked.items() if topics}


def unassigned_ranges(group: Group, target: Assignment) -> dict[str, dict[str, str]]:
    """Reason -> topic -> ranges of the partitions that the target leaves without an owner."""
    return {reason: _ranges(partitions) for reason, partitions in _unassigned(group, target).items()}


def group_moves(group: Group, target: Assignment, lag: Int64s) -> tuple[Move, ...]:
    """Every partition whose owner changes, by topic and number, with its lag in records."""
    names = (*group.member_ids, None)
    holder, topics = group.ownership.holder, group.topics
    moved = np.flatnonzero(holder != target.member)
    return tuple(
        map(
            Move,
            [topics.names[topic] for topic in topics.topic_of[moved].tolist()],
            topics.number_of[moved].tolist(),
            [names[member] for member in holder[moved].tolist()],
            [names[member] for member in target.member[moved].tolist()],
            lag[moved].tolist(),
        )
    )


def to_target(
    group: Group, assignment: Assignment, *, facts: GroupFacts, strategy: str, lag: Int64s
) -> Target:
    """The assignment by names, with its figures; `lag` in records of each partition, as the group's may be in work."""
    holder = group.ownership.holder
    base = ranges_by_member(group, holder)
    stays = np.array_equal(holder, assignment.member)
    wanted = base if stays else ranges_by_member(group, assignment.member)
    unassigned = unassigned_ranges(group, assignment)
    # The epoch of a KIP-848 group also rises without a move, when a member that reads nothing comes or goes.
    generation = None if facts.is_kip848 else facts.generation
    counted = readers(group) if facts.is_kip848 else frozenset(group.member_ids)
    subscribed = sorted(
        (one.member_id, *sorted(one.topics)) for one in facts.members if one.member_id in counted
    )
    return Target(
        assignment=assignment,
        by_member=wanted,
        moves=() if stays else group_moves(group, assignment, lag),
        revoked={} if stays else revoked_ranges(group, assignment),
        unassigned=unassigned,
        base_hash=_hash([generation, facts.assignor, _of(counted, base), subscribed]),
        target_hash=_hash([strategy, _of(counted, wanted), unassigned]),
        figures=_figures(group, assignment),
    )


def readers(group: Group) -> frozenset[str]:
    """Members that subscribe to a topic that exists."""
    reads = np.isin(np.arange(group.n_members), group.subscriptions.members).tolist()
    return frozenset(name for name, is_reader in zip(group.member_ids, reads, strict=True) if is_reader)


def _of(members: Collection[str], placed: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {name: topics for name, topics in placed.items() if name in members}


def _figures(group: Group, assignment: Assignment) -> Figures:
    # A consumer drops partitions of topics that it does not subscribe to: nobody drains them.
    before = after = _finite(drain_s(group, group.owner)), lag_imbalance(group, group.owner)
    if not np.array_equal(group.owner, assignment.member):
        after = _finite(drain_s(group, assignment.member)), lag_imbalance(group, assignment.member)
    return Figures(
        drain_s_before=before[0],
        drain_s_after=after[0],
        drain_s_bound=_finite(lower_bound_s(group) if assignment.bound_s is None else assignment.bound_s),
        capacity_known=group.capacity is not None,
        imbalance_before=before[1],
        imbalance_after=after[1],
    )


def to_sent(
    group: Group, target: Target, *, facts: GroupFacts, rules: Rules, epoch: int, now_ms: int, lag: int
) -> Sent:
    """Return the record that publishes the target for a group that is `lag` records behind.

    Raises:
        ControlRecordTooLargeError: The record is larger than `rules.max_record_bytes`.
    """
    valid_until_ms = now_ms + rules.valid_for_ms
    base = by_member(group, group.ownership.holder)
    wanted = by_member(group, target.assignment.member)
    record = ControlRecord(
        cluster=rules.cluster,
        group=facts.group_id,
        epoch=epoch,
        strategy=rules.strategy,
        dry_run=rules.dry_run,
        group_protocol="consumer" if facts.is_kip848 else "classic",
        created_at_ms=now_ms,
        valid_until_ms=valid_until_ms,
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
            for m in target.moves
        ),
        unassigned=_unassigned(group, target.assignment),
        why=ControlReasons(
            drain_s_before=target.figures.drain_s_before,
            drain_s_after=target.figures.drain_s_after,
            drain_s_bound=target.figures.drain_s_bound,
            lag=lag,
        ),
    )
    value = encode(record, limit_bytes=rules.max_record_bytes).decode()
    return Sent(epoch=epoch, record=value, valid_until_ms=valid_until_ms, migration=rules.migration)


def _unassigned(group: Group, target: Assignment) -> dict[str, Placed]:
    if not target.why.any():
        return {}
    return {
        why.words: by_topic(group.topics, np.flatnonzero(target.why == why))
        for why in Unassigned
        if why != Unassigned.ASSIGNED and (target.why == why).any()
    }


def _ranges(placed: Placed) -> dict[str, str]:
    return {topic: format_ranges(numbers) for topic, numbers in placed.items()}


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _hash(content: object) -> str:
    return hashlib.sha256(_encoded(content).encode()).hexdigest()[:16]
