"""Plan: converts the stored rows of one group into the facts for a decision."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assignor.protocol.commands import Approval, Orders, parse_pin
from pipeline.planning.facts import AckFacts, GroupFacts, MemberFacts, Reconciliation
from pipeline.planning.rows.reconciliation import reconciliations


def group_facts(
    row: Mapping[str, Any],
    *,
    cluster: str,
    behind: Sequence[int],
    provisional_reason: str | None,
    held: str | None = None,
    at_ms: int,
) -> GroupFacts:
    """The group, its members, their acknowledgements and the operators' orders.

    Args:
        row: Row of `schemas.CONSUMER_GROUPS`, all null for a group that only commits. It also has the group's
            `commits_partition`, the `unconfirmed_reason` of its commits if the group has none itself, its `acks`
            (`fold.control_messages.about_plans`), its row of `orders`, and `moved` (`HANDED_OVER` there).
        cluster: Name of the cluster.
        behind: Partitions of the offsets topic whose groups are provisional.
        provisional_reason: Why these groups are provisional.
        held: Why the group may have no plan; None if it may.
        at_ms: Time of the tables.
    """
    partition = row["offsets_partition"] if row["offsets_partition"] is not None else row["commits_partition"]
    return GroupFacts(
        group_id=row["group_id"],
        group_type=row["group_type"],
        state=row["state"],
        protocol_type=row["protocol_type"],
        assignor=row["assignor"],
        generation=row["generation"],
        target_epoch=row["target_epoch"],
        members=_members(row, at_ms=at_ms),
        provisional=held
        or (provisional_reason if partition in behind else None)
        or row["unconfirmed_reason"],
        acks=_acks(row),
        orders=_orders(row["orders"], cluster) if row["orders"] else None,
    )


def _acks(row: Mapping[str, Any]) -> tuple[AckFacts, ...]:
    if row["group_type"] == "consumer":
        # The partitions that its members own serve as acknowledgements; records on the topic could come from anybody.
        return ()
    return tuple(
        AckFacts(kind=ack["kind"], member_id=ack["member_id"], epoch=ack["epoch"], why=ack["why"])
        for ack in row["acks"]
    )


def _members(row: Mapping[str, Any], *, at_ms: int) -> tuple[MemberFacts, ...]:
    """The members, each with the partitions that it holds now."""
    gained: dict[str | None, list[tuple[str, int]]] = {}
    for one in row["moved"]:
        # A partition on its way has no owner.
        gained.setdefault(one["member_id"], []).append((one["topic"], one["partition"]))
    left = {place for places in gained.values() for place in places}
    reached = reconciliations(row, at_ms=at_ms)
    return tuple(
        _member_facts(member, left, gained.get(member["member_id"], []), reached.get(member["member_id"]))
        for member in row["members"] or ()
    )


def _member_facts(
    member: Mapping[str, Any],
    left: Collection[tuple[str, int]],
    gained: list[tuple[str, int]],
    reached: Reconciliation | None,
) -> MemberFacts:
    # Arrow maps are lists of pairs.
    given = member["assigned"] or ()
    held = dict(given)
    if left:
        held = {topic: [n for n in numbers if (topic, n) not in left] for topic, numbers in given}
        for topic, number in gained:
            held.setdefault(topic, []).append(number)
    return MemberFacts(
        member_id=member["member_id"],
        instance_id=member["group_instance_id"],
        client_id=member["client_id"],
        client_host=member["client_host"],
        topics=tuple(member["topics"] or ()),
        assigned={topic: tuple(numbers) for topic, numbers in held.items()},
        error=member["error"],
        reconciliation=reached,
    )


def _orders(row: Mapping[str, Any], cluster: str) -> Orders:
    triggered, resumed, ordered = row["triggered_at"], row["resumed_at"], row["ordered_at"]
    return Orders(
        cluster=cluster,
        group=row["group_id"],
        paused=row["paused"],
        pause_reason=row["pause_reason"] or "",
        pinned={topic: parse_pin(text) for topic, text in row["pinned"]},
        triggered_at_ms=None if triggered is None else round(triggered.timestamp() * 1000),
        resumed_at_ms=None if resumed is None else round(resumed.timestamp() * 1000),
        approval=_approval(row),
        at_ms=round(ordered.timestamp() * 1000),
        by=row["ordered_by"] or "",
    )


def _approval(row: Mapping[str, Any]) -> Approval | None:
    if row["approved_at"] is None:
        return None
    return Approval(
        target_hash=row["approved_target_hash"],
        base_hash=row["approved_base_hash"],
        reason=row["approval_reason"] or "",
        by=row["approved_by"] or "",
        at_ms=round(row["approved_at"].timestamp() * 1000),
    )
